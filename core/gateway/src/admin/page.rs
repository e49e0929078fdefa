//! The dashboard's files, from the folder `dashboard/`. They hold no secrets: the page asks for its data with
//! the token.

use windrow_http::content_type;

use super::answer::Answer;

macro_rules! files {
    ($($path:literal)*) => { [$(($path, include_bytes!(concat!("../../../../dashboard", $path)).as_slice()),)*] };
}

const FILES: [(&str, &[u8]); 24] = files! {
    "/api.js" "/appends.js" "/charts.js" "/dead_letters.js" "/dom.js" "/favicon.svg" "/figures.js"
    "/format.js" "/health.js" "/history.js" "/index.html" "/main.js" "/opened_dead_letter.js"
    "/otlp.js" "/pipelines.js" "/polling.js" "/refusals.js" "/settings.js" "/style.css" "/table.js" "/tables.js"
    "/theme.js" "/vendor/uplot/uPlot.iife.min.js" "/vendor/uplot/uPlot.min.css"
};

/// Finds a file by its path. The page itself is at the root.
fn named(path: &str) -> Option<&'static (&'static str, &'static [u8])> {
    let path = match path {
        "/" => "/index.html",
        "/index.html" => return None,
        other => other,
    };
    FILES.iter().find(|(known, _)| *known == path)
}

pub(super) fn is_of_page(path: &str) -> bool {
    named(path).is_some()
}

pub(super) fn file(path: &str) -> Option<Answer> {
    let (name, bytes) = named(path)?;
    Some(Answer::new(200, content_type(name), *bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_dashboard_is_served() {
        let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../dashboard"))];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.extension().and_then(|extension| extension.to_str()) {
                    _ if path.is_dir() => folders.push(path),
                    Some("html" | "css" | "js" | "svg") => files += 1,
                    // Licences, and what is said of them.
                    _ => {}
                }
            }
        }
        assert_eq!(files, FILES.len());
    }
}
