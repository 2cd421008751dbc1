// What the built module itself takes, without Envoy: modules take turns at the pages that the benches name, in V8 compiled
// as Envoy has it compiled. Answers a question of some percent that a whole proxy on a busy machine does not.
//
//     LONGHAUL_CORPORA=... node --no-liftoff filters/url-rewrite/bench/module.mjs [--rounds=7] OLD.wasm NEW.wasm ...
//
// Prints microseconds of processor time a page, the least of all rounds, and the median ratio to the first module. Pages
// that do not come out of all modules the same are named. Host calls that change nothing here succeed and do nothing.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROUNDS = Number(process.argv.find((one) => one.startsWith("--rounds="))?.slice(9) ?? 7);
const ROUND_MS = 60;
const CHUNK_BYTES = 32768; // as Envoy's buffers hand them over
const CONFIGURATION = {
  targets: { https: ["pep.example.net"], http: [] },
  own: ["pep.example.net"],
  level: "safe",
  ports: [80, 443],
};
// The same pages as in integration/bench/real_pages.py.
const PAGES = [
  ["spec", "www.ecma-international.org", "lol-html/benches/data/ecma402-spec.html"],
  ["shop", "www.cloudflare.com", "lol-html/benches/data/cloudflare.com.html"],
  ["news 2010", "www.elmundo.es", "goose3/tests/data/content/test_elmondo1.html"],
  ["news 2013", "techcrunch.com", "goose3/tests/data/content/test_techcrunch1.html"],
  ["portal", "news.yahoo.com", "goose3/tests/data/content/test_yahoo.html"],
  ["news 2019", "www.theguardian.com", "trafilatura/tests/cache/theguardian.com.academics.html"],
  ["magazine", "www.pcgamer.com", "trafilatura/tests/cache/pcgamer.com.skyrim.html"],
];

const REQUEST_HEADERS = 0;
const RESPONSE_BODY = 1;
const ROOT_CONTEXT = 1;
const text = new TextEncoder();

/** Headers as the ABI (proxy-wasm 0.2.1) has them: count, lengths, then names and values, each with a zero behind it. */
function serialized(headers) {
  const words = [headers.length, ...headers.flat().map((one) => one.length)];
  const numbers = new Uint8Array(new Uint32Array(words).buffer);
  return Buffer.concat([numbers, ...headers.flat().map((one) => text.encode(`${one}\0`))]);
}

/** One instance of a module, configured, and the host around it. */
class Filter {
  #exports;
  #buffers = new Map([[7, text.encode(JSON.stringify(CONFIGURATION))]]);
  #headers = [];
  #lastContext = ROOT_CONTEXT;
  /** What became of the chunk under way; none if it was left. */
  #replaced = null;

  constructor(file) {
    const module = new WebAssembly.Module(readFileSync(file));
    const imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
      (imports[from] ??= {})[name] = this.#hostCall(name);
    }
    this.#exports = new WebAssembly.Instance(module, imports).exports;
    this.#exports._initialize();
    this.#exports.proxy_on_context_create(ROOT_CONTEXT, 0);
    if (!this.#exports.proxy_on_configure(ROOT_CONTEXT, this.#buffers.get(7).length)) {
      throw new Error(`${file} refuses the configuration of this bench`);
    }
  }

  /** Rewrites a page; `take` gets every chunk that leaves. */
  rewrite(page, take) {
    const context = (this.#lastContext += 1);
    this.#headers = page.headers;
    this.#exports.proxy_on_context_create(context, ROOT_CONTEXT);
    this.#exports.proxy_on_request_headers(context, 0, 1);
    this.#exports.proxy_on_response_headers(context, 0, 0);
    for (let at = 0; at < page.body.length; at += CHUNK_BYTES) {
      const chunk = page.body.subarray(at, at + CHUNK_BYTES);
      this.#buffers.set(RESPONSE_BODY, chunk);
      this.#replaced = null;
      this.#exports.proxy_on_response_body(context, chunk.length, at + CHUNK_BYTES >= page.body.length ? 1 : 0);
      take?.(this.#replaced ?? chunk);
    }
    this.#exports.proxy_on_delete(context);
  }

  #hostCall(name) {
    switch (name) {
      case "proxy_get_buffer_bytes":
        return (kind, start, size, ...out) => this.#give(this.#buffers.get(kind).subarray(start, start + size), out);
      case "proxy_set_buffer_bytes":
        return (_kind, _start, _size, at, size) => {
          this.#replaced = Buffer.from(this.#exports.memory.buffer, at, size);
          return 0;
        };
      case "proxy_get_header_map_pairs":
        return (map, ...out) => this.#give(this.#headers[map === REQUEST_HEADERS ? 0 : 1], out);
      case "environ_sizes_get":
        return (...out) => this.#write(out, [0, 0]);
      default:
        return () => 0;
    }
  }

  #give(bytes, out) {
    const at = this.#exports.proxy_on_memory_allocate(bytes.length);
    new Uint8Array(this.#exports.memory.buffer).set(bytes, at);
    return this.#write(out, [at, bytes.length]);
  }

  #write(out, numbers) {
    const memory = new DataView(this.#exports.memory.buffer);
    out.forEach((at, index) => memory.setUint32(at, numbers[index], true));
    return 0;
  }
}

function read([name, host, file]) {
  const corpora = process.env.LONGHAUL_CORPORA ?? join(import.meta.dirname ?? ".", "../../../../shared/corpora");
  const body = readFileSync(join(corpora, "html", file));
  const request = [[":authority", host], [":path", "/"], [":method", "GET"], [":scheme", "http"]];
  const response = [[":status", "200"], ["content-type", "text/html"], ["content-length", String(body.length)]];
  return { name, body, headers: [serialized(request), serialized(response)] };
}

function digest(filter, page) {
  const hash = createHash("sha256");
  filter.rewrite(page, (chunk) => hash.update(chunk));
  return hash.digest("hex");
}

function microsecondsAPage(filter, page) {
  const [end, before] = [performance.now() + ROUND_MS, process.cpuUsage()];
  let pages = 0;
  for (; performance.now() < end; pages += 1) filter.rewrite(page);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / pages;
}

const median = (numbers) => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)];
const row = (name, numbers, digits) =>
  console.log(name.padEnd(16), ...numbers.map((one) => one.toFixed(digits).padStart(9)));

const filters = process.argv.slice(2).filter((one) => !one.startsWith("--")).map((file) => new Filter(file));
const product = filters.map(() => 1);
for (const page of PAGES.map(read)) {
  if (new Set(filters.map((filter) => digest(filter, page))).size > 1) console.log(`${page.name}: outputs differ`);
  const times = filters.map(() => []);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let turn = 0; turn < filters.length; turn += 1) {
      const index = (round + turn) % filters.length; // nobody is always first
      times[index].push(microsecondsAPage(filters[index], page));
    }
  }
  const ratios = times.map((own) => median(own.map((time, round) => time / times[0][round])));
  ratios.forEach((ratio, index) => (product[index] *= ratio));
  row(page.name, times.map((own) => Math.min(...own)), 1);
  row("", ratios, 3);
}
row("geometric mean", product.map((one) => one ** (1 / PAGES.length)), 3);
