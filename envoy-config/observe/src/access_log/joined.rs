//! One line for each request: the reason that a hop behind found joins the line of the client's request.

use std::collections::VecDeque;

use super::request::{Hop, Request};

/// The lines that may wait for their request. The request ends a moment after the line of its failure.
const MOST_WAITING: usize = 64;

/// Holds the lines of failures behind the first hop until the line of their request comes.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    waiting: VecDeque<Request>,
}

impl Joined {
    /// Takes the next line of a log. Returns the requests that are complete.
    pub(crate) fn take(&mut self, mut request: Request) -> Vec<Request> {
        if request.hop == Hop::Beyond {
            self.waiting.push_back(request);
            let too_many = self.waiting.len().saturating_sub(MOST_WAITING);
            return self.waiting.drain(..too_many).collect();
        }
        if request.has_failed() {
            self.explain(&mut request);
        }
        vec![request]
    }

    /// Returns the lines that no request explains: those of the proxy's own requests.
    pub(crate) fn rest(&mut self) -> Vec<Request> {
        self.waiting.drain(..).collect()
    }

    fn explain(&mut self, request: &mut Request) {
        let waiting = std::mem::take(&mut self.waiting);
        let (reasons, others): (VecDeque<Request>, VecDeque<Request>) =
            waiting.into_iter().partition(|other| other.target() == request.target());
        self.waiting = others;
        // Retries leave a line each; the last one decided.
        if let Some(reason) = reasons.into_iter().next_back() {
            request.explained_by(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::line;
    use super::*;

    fn of(changes: &[(&str, &str)]) -> Request {
        let text = changes.iter().fold(line(""), |text, (from, to)| text.replace(from, to));
        Request::parse(&text).unwrap()
    }

    const FAILED: (&str, &str) = (r#""status":200"#, r#""status":502"#);
    const BEYOND: (&str, &str) = ("edge_http", "inner");
    const NO_NAME: (&str, &str) = (r#""flags":"-""#, r#""flags":"DF""#);

    #[test]
    fn a_failure_behind_the_first_hop_is_the_reason_of_its_request() {
        let mut joined = Joined::default();
        assert!(joined.take(of(&[FAILED, BEYOND, NO_NAME])).is_empty());
        let other = of(&[("/a?b", "/other"), FAILED]);
        assert_eq!(joined.take(other.clone()), [other], "another URL has another reason");
        let good = of(&[]);
        assert_eq!(joined.take(good.clone()), [good], "a response of 200 has no reason to fail");
        let [request] = joined.take(of(&[FAILED])).try_into().unwrap();
        assert_eq!(request.hop, Hop::Client);
        assert!(request.words(5000).contains("the name has no address"), "{}", request.words(5000));
        assert!(joined.rest().is_empty());
    }

    #[test]
    fn a_failure_without_a_request_stands_alone_and_the_number_is_bounded() {
        let mut joined = Joined::default();
        for _ in 0..MOST_WAITING {
            assert!(joined.take(of(&[FAILED, BEYOND])).is_empty());
        }
        assert_eq!(joined.take(of(&[FAILED, BEYOND])).len(), 1);
        assert_eq!(joined.rest().len(), MOST_WAITING);
    }
}
