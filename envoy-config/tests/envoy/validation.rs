//! Every kind of configuration is one that Envoy takes.

use crate::support::config::Config;
use crate::support::envoy::Envoy;

#[test]
fn the_default_configuration_is_accepted() {
    let config = Config::new("");
    for (path, text) in config.render().files() {
        std::fs::create_dir_all("/tmp/env/out").unwrap();
        std::fs::write(format!("/tmp/env/out/{}", path.replace('/', "__")), text).unwrap();
    }
    let Some(envoy) = Envoy::start(&config) else { return };
    assert_eq!(envoy.admin("/listeners").lines().count(), 4);
}
