[include_str!("../figures/orthrus-13.toml")]
