//! Seeds of the targets, one for each case that a target knows.

pub(crate) const HTML: &[&[u8]] = &[
    b"\x07<!doctype html><img src=\"http://i.cnn.net/a.png\" srcset='//i.cnn.net/b.png 2x, c.png'><p style='background:url(http://i.cnn.net/c.png)'>",
    b"\x03<base href=//cdn.example/x/><link rel=stylesheet href=a.css><script src=b.js></script><style>@import 'c.css'; p{mask:url(d)}</style>",
    b"\x01<noscript><img src='http://i.cnn.net/x'></noscript><template><img src=y></template><svg><image xlink:href=//i.cnn.net/z /></svg>",
    b"\x0b<meta http-equiv=content-security-policy content=\"img-src i.cnn.net\"><img src=http://i.cnn.net/1 alt='&amp;'><table background='&#104;ttp://i.cnn.net/2'>",
    b"\x05<!-- <img src=http://i.cnn.net/a> --><textarea><img src=http://i.cnn.net/b></textarea><plaintext><img src=http://i.cnn.net/c>",
    b"\x02<meta charset=shift_jis><img src='http://i.cnn.net/\x83\x5c'><![CDATA[<img src=http://i.cnn.net/d>]]><select><option><img src=http://i.cnn.net/e>",
];

pub(crate) const CSS: &[&[u8]] = &[
    b"\x03@charset \"utf-8\"; @import url(http://cdn.example/a.css) layer(x); @namespace url(http://www.w3.org/1999/xhtml);",
    b"\x05p{background:url( 'http://i.cnn.net/a\\62 .png' ) , image-set(\"//i.cnn.net/b.png\" 1x, url(c.png) 2x)}",
    b"\x01@font-face{font-family:x;src:url(//cdn.example/f.woff2) format('woff2')} a{--x:url(/y);cursor:url(z),auto}/* url(http://i.cnn.net/) */",
    b"\x07a{b:url(http://i.cnn.net/\\\n)}c{d:u\\72l(http://i.cnn.net/e)}f{g:url(#h)}i{j:url(data:,k)}l{m:url(bad url)}\"unclosed http://i.cnn.net/",
];

pub(crate) const SRCSET: &[&[u8]] = &[
    b"\x05http://i.cnn.net/a.png 1x, //i.cnn.net/b,c.png 2x,http://i.cnn.net/d.png",
    b"\x02 ,, a.png 100w , http://i.cnn.net/x,y,,z 200w (a , b) , data:,x 3x, http://i.cnn.net/q, ",
    b"\x01http://i.cnn.net/&comma;a 2x&#44; http://i.cnn.net/b 3x",
];

pub(crate) const URLS: &[&[u8]] = &[
    b"\x01http://i.cnn.net/plane.jpg?a=b#c",
    b"\x02//I.Cnn.Net:8080/a/../%2e%2E/b\\c",
    b"\x03https:/b\xc3\xbccher.example:443/\xc3\xa9 ?\xc3\xa9",
    b"\x04http:\\\\0xc0.0.2.7/\t\n/x",
    b"\x05../../x?y/../z",
    b"\x06http://user:pw@[2001:db8::1]/",
    b"\x07http:?x",
];

pub(crate) const PATHS: &[&[u8]] = &[
    b"i.cnn.net/plane.jpg?a=b",
    b"i.cnn.net:443//x",
    b"[2001:db8::1]:8080/../y",
    b"xn--bcher-kva.example/%00%zz",
    b"192.0.2.7:080/",
    b"pep.example.net/",
];

pub(crate) const HEADERS: &[&[u8]] = &[
    b"\x02:authority:www.foo.example\n:path:/\n:status:200\ncontent-type:text/html\ncontent-security-policy:img-src i.cnn.net; default-src 'self' *.example 'nonce-x'\nlink:<http://cdn.example/a.css>; rel=preload; as=style\netag:\"a\"",
    b"\x05:authority:pep.example.net\n:path:/i.cnn.net:443/x\ncookie:a=b\nreferer:https://pep.example.net/i.cnn.net/y\nif-none-match:W/\"a;lh=0000000000000000\"\n:status:302\nlocation:../x\nrefresh:0;url='y'\nset-cookie:a=b",
    b"\x03:authority:pep.example.net\n:path:/cdn.example/x\naccept:*/*\n:status:200\ncontent-type:text/plain\nx-content-type-options:nosniff",
];

/// Byte strings that matter to a target but rarely arise at random. cargo-fuzz inserts them into inputs.
pub const TOKENS: &[&[u8]] = &[
    b"<img src=",
    b"<script src='",
    b"<style>",
    b"</style>",
    b"<noscript>",
    b"</noscript>",
    b"</script>",
    b"<link rel=stylesheet href=//cdn.example/a.css>",
    b"<script src=//cdn.example/a.js></script>",
    b"<table>",
    b"<base href=",
    b"<svg>",
    b"<template>",
    b"<!--",
    b"-->",
    b"<link rel=stylesheet href=",
    b" style=\"",
    b"srcset=",
    b"url(",
    b"image-set(",
    b"@import ",
    b"http://i.cnn.net/",
    b"//cdn.example/",
    b"https://",
    b"/../",
    b"%2e",
    b"&amp;",
    b"&#x2f;",
    b"\\",
    b"\"",
    b"'",
    b">",
    b")",
    b",",
    b" 2x",
    b"\0",
    b"\xff",
    b"\r\n",
    b":443",
    b"pep.example.net",
    b"content-security-policy:",
    b"img-src ",
    b"link:",
    b"\nset-cookie:",
    b"; rel=preload; as=image",
];
