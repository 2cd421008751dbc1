import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.MessageDigest;
import java.util.HexFormat;

/** Fetches a URL as Java programs do, and prints status and digest of each response. */
public class Get {
    public static void main(String[] arguments) throws Exception {
        // Without it, `Upgrade` would be left out.
        System.setProperty("sun.net.http.allowRestrictedHeaders", "true");
        URI uri = URI.create(arguments[0]);
        // java.net.http asks each plain http origin for an upgrade to h2c.
        HttpResponse<byte[]> first = get(uri, 3);
        print("default", first.statusCode(), first.body());
        // Apache HttpClient from 5.4 on sends these two fields with each plain request.
        HttpURLConnection second = (HttpURLConnection) uri.toURL().openConnection();
        second.setRequestProperty("Upgrade", "TLS/1.2");
        second.setRequestProperty("Connection", "Upgrade");
        int status = second.getResponseCode();
        try (InputStream body = status < 400 ? second.getInputStream() : second.getErrorStream()) {
            print("upgrade to TLS", status, body.readAllBytes());
        }
    }

    /** A busy Apache may end the upgraded connection before Java has sent its first request there. */
    private static HttpResponse<byte[]> get(URI uri, int attempts) throws Exception {
        try {
            return HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofByteArray());
        } catch (IOException error) {
            if (attempts == 1) throw error;
            return get(uri, attempts - 1);
        }
    }

    private static void print(String what, int status, byte[] body) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(body);
        System.out.println(what + " " + status + " " + body.length + " " + HexFormat.of().formatHex(digest));
    }
}
