//! The dashboard's files, as they stand in `dashboard/`. They hold no secrets: what they show they ask for, with the token.

use super::answer::Answer;

macro_rules! files {
    ($($path:literal $file:literal $kind:literal,)*) => {
        [$(($path, $kind, include_bytes!(concat!("../../../../dashboard/", $file)).as_slice()),)*]
    };
}

const FILES: [(&str, &str, &[u8]); 23] = files! {
    "/api.js" "api.js" "text/javascript; charset=utf-8",
    "/appends.js" "appends.js" "text/javascript; charset=utf-8",
    "/charts.js" "charts.js" "text/javascript; charset=utf-8",
    "/dead_letters.js" "dead_letters.js" "text/javascript; charset=utf-8",
    "/dom.js" "dom.js" "text/javascript; charset=utf-8",
    "/favicon.svg" "favicon.svg" "image/svg+xml",
    "/figures.js" "figures.js" "text/javascript; charset=utf-8",
    "/format.js" "format.js" "text/javascript; charset=utf-8",
    "/health.js" "health.js" "text/javascript; charset=utf-8",
    "/history.js" "history.js" "text/javascript; charset=utf-8",
    "/" "index.html" "text/html; charset=utf-8",
    "/main.js" "main.js" "text/javascript; charset=utf-8",
    "/opened_dead_letter.js" "opened_dead_letter.js" "text/javascript; charset=utf-8",
    "/pipelines.js" "pipelines.js" "text/javascript; charset=utf-8",
    "/polling.js" "polling.js" "text/javascript; charset=utf-8",
    "/refusals.js" "refusals.js" "text/javascript; charset=utf-8",
    "/settings.js" "settings.js" "text/javascript; charset=utf-8",
    "/style.css" "style.css" "text/css; charset=utf-8",
    "/table.js" "table.js" "text/javascript; charset=utf-8",
    "/tables.js" "tables.js" "text/javascript; charset=utf-8",
    "/theme.js" "theme.js" "text/javascript; charset=utf-8",
    "/vendor/uplot/uPlot.iife.min.js" "vendor/uplot/uPlot.iife.min.js" "text/javascript; charset=utf-8",
    "/vendor/uplot/uPlot.min.css" "vendor/uplot/uPlot.min.css" "text/css; charset=utf-8",
};

pub(super) fn is_of_page(path: &str) -> bool {
    FILES.iter().any(|(known, ..)| *known == path)
}

pub(super) fn file(path: &str) -> Option<Answer> {
    let (_, kind, bytes) = FILES.iter().find(|(known, ..)| *known == path)?;
    Some(Answer::new(200, kind, *bytes))
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
