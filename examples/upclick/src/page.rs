//! The live page: its files, and its data, served on loopback.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use windrow_http::{content_type, Method, RequestHead, ResponseBuilder};

use crate::local_server::{Answers, LocalServer};
use crate::options::DemoOptions;
use crate::snapshot::{CityView, Point, SideView, Snapshot};
use crate::watch::COURSE_STEP_SECONDS;

/// Time for which a viewer is assumed to look at the page after a request.
const LOOKING: Duration = Duration::from_secs(5);

macro_rules! files {
    ($($folder:literal: $($path:literal)*;)*) => {
        [$($(($path, include_bytes!(concat!("../", $folder, $path)).as_slice()),)*)*]
    };
}

/// The files of the page, with those that it shares with the gateway's dashboard.
const FILES: [(&str, &[u8]); 22] = files! {
    "page": "/index.html" "/style.css" "/main.js" "/map.js" "/card.js" "/comparison.js" "/verdict.js" "/svg.js"
        "/vendor/d3-array/d3-array.min.js" "/vendor/d3-geo/d3-geo.min.js"
        "/vendor/topojson-client/topojson-client.min.js" "/vendor/world-atlas/countries-110m.json";
    "../..": "/dashboard/style.css" "/dashboard/theme.js" "/dashboard/dom.js" "/dashboard/format.js"
        "/dashboard/charts.js" "/dashboard/history.js" "/dashboard/table.js" "/dashboard/favicon.svg"
        "/dashboard/vendor/uplot/uPlot.iife.min.js" "/dashboard/vendor/uplot/uPlot.min.css";
};

/// The page while it is served.
pub(crate) struct Page {
    server: LocalServer,
    shared: Arc<Shared>,
}

struct Shared {
    dashboard: Option<String>,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    snapshot: Snapshot,
    asked: Option<Instant>,
}

impl Page {
    pub async fn start(options: &DemoOptions) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { dashboard: options.dashboard.clone(), now: Mutex::default() });
        Ok(Self { server: LocalServer::start(shared.clone()).await?, shared })
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.server.address)
    }

    /// Sets the snapshot to show. Says whether anyone looks at the page.
    pub fn show(&self, snapshot: Snapshot) -> bool {
        let mut now = self.shared.lock();
        now.snapshot = snapshot;
        now.asked.is_some_and(|asked| asked.elapsed() < LOOKING)
    }

    /// Sets the last snapshot, which is shown until the page closes.
    pub fn end(&self, mut snapshot: Snapshot) {
        snapshot.ended = true;
        self.show(snapshot);
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Now> {
        // Plain assignments can't panic half-way.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) -> Value {
        let mut now = self.lock();
        now.asked = Some(Instant::now());
        as_json(&now.snapshot, self.dashboard.as_deref())
    }
}

impl Answers for Shared {
    async fn answer(&self, head: &RequestHead, out: &mut Vec<u8>) {
        if !matches!(head.method(), Method::Get) {
            return ResponseBuilder::new(out, 405).field("Allow", "GET").for_browsers().body(b"");
        }
        let path = head.target().split('?').next().unwrap_or_default();
        if path == "/api/run" {
            let body = self.run().to_string();
            let answer = ResponseBuilder::new(out, 200).field("Content-Type", "application/json");
            return answer.for_browsers().body(body.as_bytes());
        }
        let path = if path == "/" { "/index.html" } else { path };
        match FILES.iter().find(|(known, _)| *known == path) {
            Some((_, bytes)) => {
                ResponseBuilder::new(out, 200).field("Content-Type", content_type(path)).for_browsers().body(bytes);
            }
            None => ResponseBuilder::new(out, 404).for_browsers().body(b"The live page is at /.\n"),
        }
    }
}

/// Opens a browser, but only where a person sits before a screen: not in a pipe, over SSH or in a container.
pub(crate) fn open_in_browser(url: &str) {
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if std::io::stdout().is_terminal() && has_screen {
        // Its address is printed, so nothing is lost without a browser.
        let _ = open::that_detached(url);
    }
}

fn as_json(snapshot: &Snapshot, dashboard: Option<&str>) -> Value {
    let first = snapshot.sides.first();
    json!({
        "title": snapshot.title,
        "subtitle": snapshot.subtitle,
        "elapsed_seconds": snapshot.elapsed.as_secs_f64(),
        "ended": snapshot.ended,
        "engine": first.map(|side| side.engine.name()),
        "pieces": first.map(|side| side.engine.pieces()),
        "dashboard": dashboard,
        "kpi_ms": snapshot.kpi_ms,
        "averaged_over_seconds": snapshot.averaged_over.as_secs(),
        "last_minute_step_seconds": COURSE_STEP_SECONDS,
        "cities": snapshot.cities.iter().map(city_json).collect::<Vec<_>>(),
        "sides": snapshot.sides.iter().map(side_json).collect::<Vec<_>>(),
        "history": history_json(snapshot),
        "sentence": snapshot.sentence,
    })
}

fn city_json(view: &CityView) -> Value {
    json!({
        "name": view.city.name,
        "country": view.city.country,
        "latitude": view.city.latitude,
        "longitude": view.city.longitude,
        "average_ms": view.average_ms,
        "last_minute_ms": view.course_ms,
    })
}

fn side_json(side: &SideView) -> Value {
    let SideView { results, store, .. } = side;
    json!({
        "name": side.name,
        "inserts_per_second": side.inserts_per_second,
        "rows_inserted": results.sent,
        "acknowledged": results.acknowledged,
        "found": store.found,
        "failures": results.failures,
        "problem": results.last_error.as_ref().or(store.problem.as_ref()),
        "ack_p50_ms": results.ack_p50_ms,
        "ack_p99_ms": results.ack_p99_ms,
        "active_parts": store.active_parts,
        "all_parts": store.all_parts,
        "parts_per_second": side.parts_per_second,
        "cpu_percent": side.database_cpu_percent,
    })
}

fn history_json(snapshot: &Snapshot) -> Value {
    fn column<T: serde::Serialize>(side: &SideView, of: impl Fn(&Point) -> T) -> Vec<T> {
        side.past.iter().map(of).collect()
    }
    let of_side = |side: &SideView| {
        json!({
            "parts_per_second": column(side, |point| point.parts_per_second),
            "active_parts": column(side, |point| point.active_parts),
            "all_parts": column(side, |point| point.all_parts),
            "cpu_percent": column(side, |point| point.database_cpu_percent),
        })
    };
    json!({
        "seconds": snapshot.sides.first().map(|side| column(side, |point| point.second)),
        "sides": snapshot.sides.iter().map(of_side).collect::<Vec<_>>(),
    })
}
