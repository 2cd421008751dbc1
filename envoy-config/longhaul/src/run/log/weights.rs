//! The weights of a remote's clients, from an access log that Envoy writes for this program alone.

use longhaul_render::Weights;

/// The weights of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct HeardWeights {
    /// The names in its certificate.
    pub(in super::super) of: Vec<String>,
    pub(in super::super) weights: Weights,
}

/// Parses what follows the mark of a line.
pub(super) fn parse(rest: &str) -> Option<HeardWeights> {
    let (names, path) = rest.strip_prefix(' ')?.split_once(' ')?;
    let weights = Weights::parse(path.strip_prefix(Weights::PATH)?.strip_prefix('?')?)?;
    Some(HeardWeights { of: names.split(',').map(str::to_owned).collect(), weights })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_belong_to_the_names_of_a_certificate() {
        let heard = parse(" ship.example,a.example /weights?40=192.0.2.0/28").unwrap();
        assert_eq!(heard.of, ["ship.example", "a.example"]);
        assert_eq!(heard.weights.to_string(), "40=192.0.2.0/28");
        assert_eq!(parse(" ship.example /weights?").unwrap().weights, Weights::default());
        for line in [" ship.example /weights", " ship.example /?40=192.0.2.0/28", " /weights?"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
