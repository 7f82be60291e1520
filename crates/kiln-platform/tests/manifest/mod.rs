//! The dependencies that a manifest states.

/// The dependencies of a manifest: the line, the section, and the name of the crate.
pub fn dependencies(manifest: &str) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for (number, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let mut name = None;
        if let Some(opened) = line.strip_prefix('[') {
            section = opened.trim_end_matches(']').to_owned();
            name = section.split_once("dependencies.").map(|(_, name)| name);
        } else if section.ends_with("dependencies") {
            name = line.split(['.', '=', ' ']).next();
            // `door = { package = "rand" }` depends on rand under another name.
            if let Some((_, package)) = line.split_once("package") {
                name = package.split('"').nth(1);
            }
        }
        if let Some(name) = name.map(|name| name.trim_matches('"'))
            && !name.is_empty()
        {
            found.push((number + 1, section.clone(), name.to_owned()));
        }
    }
    found
}
