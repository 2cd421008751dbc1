//! An attacker who watches the sizes of messages and sends some cannot learn a secret byte by byte, and learns nothing
//! of another client.
//!
//! The attack is CRIME (RFC 7541, 7.1). The attacker makes the victim's browser send guesses and sees which guess
//! shortens the message because it repeats part of the secret. So each test compares the size of every guess with its
//! size beside another secret, which has nothing in common with the guesses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // clippy.toml does not recognise test helpers

mod pair;

use header_codec::FieldList;
use pair::{Pair, get, ok};

const SECRET: &str = "q7Zk2VnB8sXw";
/// A secret of the same length that differs from every guess at every place.
const OTHER: &str = "8fG6uPiHcMeC";

/// Returns guesses that share their first 0, 1, 2... letters with the secret and no later letter.
fn guesses() -> impl Iterator<Item = String> {
    (0..SECRET.len()).map(|right| format!("{}{}", &SECRET[..right], &"Jq0Wd5Rt3Ly9"[right..]))
}

/// Returns a request with one more field. A `:path` replaces the existing one.
fn request(authority: &str, name: &str, value: &str) -> FieldList {
    let mut request = get(authority, "/");
    if name == ":path" {
        request[1].1 = value.as_bytes().to_vec();
    } else {
        request.push((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    }
    request
}

/// Returns the size of a guess after the victim has sent the secret a few times. The guesser has sent a request before,
/// too.
fn size_after(secret: &FieldList, guess: &FieldList, guesser: &'static str) -> usize {
    let mut pair = Pair::new();
    for _ in 0..3 {
        pair.exchange(secret, &ok());
    }
    pair.client = guesser;
    pair.exchange(&get("evil.example", "/"), &ok());
    pair.exchange(guess, &ok()).packed_request().expect("all of these are compressed").len()
}

/// Asserts that every guess has the same size beside the secret and beside the other one. The forms build the values of
/// secrets and guesses.
#[track_caller]
fn assert_silent(secret_in: (&str, &str), guess_in: (&str, &str), secret_form: &str, guess_form: &str) {
    let held = |secret: &str| request(secret_in.0, secret_in.1, &secret_form.replace('*', secret));
    for text in guesses().chain([SECRET.to_owned()]).take(if secret_in == guess_in { SECRET.len() } else { usize::MAX })
    {
        let guess = request(guess_in.0, guess_in.1, &guess_form.replace('*', &text));
        let beside_secret = size_after(&held(SECRET), &guess, "192.0.2.1");
        let beside_other = size_after(&held(OTHER), &guess, "192.0.2.1");
        assert_eq!(beside_secret, beside_other, "{text} in {guess_in:?} tells of {SECRET} in {secret_in:?}");
    }
}

#[test]
fn paths_of_its_site_reveal_no_cookie() {
    assert_silent(("bank.example", "cookie"), ("bank.example", ":path"), "theme=dark; session=*", "/?session=*");
}

#[test]
fn cookies_of_another_site_reveal_no_cookie() {
    let form = "theme=dark; session=*";
    assert_silent(("bank.example", "cookie"), ("evil.example", "cookie"), form, form);
}

#[test]
fn cookies_of_its_site_reveal_no_cookie_byte_by_byte() {
    let form = "theme=dark; session=*";
    assert_silent(("bank.example", "cookie"), ("bank.example", "cookie"), form, form);
}

#[test]
fn guesses_reveal_no_bearer_token_byte_by_byte() {
    let form = "Bearer *.abc/def";
    assert_silent(("bank.example", "authorization"), ("bank.example", "authorization"), form, form);
}

#[test]
fn paths_of_its_site_reveal_no_token_in_a_path_byte_by_byte() {
    let form = "/reset/*/confirm";
    assert_silent(("bank.example", ":path"), ("bank.example", ":path"), form, form);
}

#[test]
fn paths_of_another_site_reveal_no_token_in_a_path() {
    let form = "/reset/*/confirm";
    assert_silent(("bank.example", ":path"), ("evil.example", ":path"), form, form);
}

#[test]
fn referers_of_a_stranger_reveal_no_token_in_a_path() {
    let chosen = "http://evil.example/reset/*/confirm";
    assert_silent(("bank.example", ":path"), ("evil.example", "referer"), "/reset/*/confirm", chosen);
}

#[test]
fn referers_of_a_stranger_reveal_no_token_in_a_referer() {
    let (own, chosen) = ("http://bank.example/reset/*/confirm", "http://evil.example/reset/*/confirm");
    assert_silent(("bank.example", "referer"), ("evil.example", "referer"), own, chosen);
}

#[test]
fn a_value_that_is_repeated_as_a_whole_costs_less() {
    let secret = request("bank.example", "cookie", &format!("theme=dark; session={SECRET}"));
    let other = request("bank.example", "cookie", &format!("theme=dark; session={OTHER}"));
    let again = size_after(&secret, &secret, "192.0.2.1");
    assert!(again + 8 <= size_after(&other, &secret, "192.0.2.1"), "or the other tests would prove nothing");
}

#[test]
fn the_values_of_one_client_change_no_message_of_another() {
    let secret = request("bank.example", "cookie", &format!("session={SECRET}"));
    let never_sent = size_after(&get("www.example.org", "/"), &secret, "192.0.2.66");
    assert_eq!(size_after(&secret, &secret, "192.0.2.66"), never_sent, "not even the whole secret, sent to its site");
}

#[test]
fn text_beside_a_secret_in_a_redirect_does_not_reveal_it() {
    // A login puts a chosen `state` and a secret `code` into one URL that is too long to be spelt under the model.
    let size = |state: &str| {
        let mut pair = Pair::new();
        let mut response = ok();
        let filler = "0123456789abcdef".repeat(300);
        let location = format!("https://app.example.org/callback?filler={filler}&state={state}&code={SECRET}{SECRET}");
        response.push((b"location".to_vec(), location.into_bytes()));
        pair.exchange(&get("login.example.org", "/"), &response).packed_response().expect("compressed").len()
    };
    assert_eq!(size(&format!("{SECRET}{SECRET}")), size(&format!("{OTHER}{OTHER}")));
}
