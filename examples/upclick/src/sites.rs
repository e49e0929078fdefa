//! The demo's own sites, served on loopback. They are as slow as the distance to the asking city would make them.

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::percent_decode;
use windrow_http::{RequestHead, ResponseBuilder};

use crate::cities::{distance_km, City, CITIES};
use crate::local_server::{Answers, LocalServer};

/// The pretended location of a site.
struct Location {
    path: &'static str,
    city: City,
}

const LOCATIONS: [Location; 2] = [
    Location { path: "/frankfurt", city: City { name: "Frankfurt", country: "DE", latitude: 50.11, longitude: 8.68 } },
    Location { path: "/virginia", city: City { name: "Ashburn", country: "US", latitude: 39.04, longitude: -77.49 } },
];

/// Time that the server itself takes to answer, in milliseconds.
const SERVER_MS: f64 = 4.0;
/// Time for a kilometre: light in a fibre, there and back, on a way longer than the shortest one.
const MS_PER_KM: f64 = 2.0 / 200.0 * 1.4;

/// The running sites. They close when this is dropped.
pub(crate) struct Sites(LocalServer);

impl Sites {
    pub async fn start() -> std::io::Result<Self> {
        Ok(Self(LocalServer::start(Arc::new(Simulated)).await?))
    }

    pub fn urls(&self) -> Vec<String> {
        LOCATIONS.iter().map(|location| format!("http://{}{}", self.0.address, location.path)).collect()
    }
}

struct Simulated;

impl Answers for Simulated {
    async fn answer(&self, head: &RequestHead, out: &mut Vec<u8>) {
        match latency_of(head) {
            Some(latency) => {
                tokio::time::sleep(latency).await;
                ResponseBuilder::new(out, 200)
                    .field("Content-Type", "text/plain")
                    .field("Keep-Alive", "timeout=120")
                    .body(b"Up.\n");
            }
            None => ResponseBuilder::new(out, 404).body(b"Known are /frankfurt and /virginia with ?from=CITY.\n"),
        }
    }
}

fn latency_of(head: &RequestHead) -> Option<Duration> {
    let (path, query) = head.target().split_once('?')?;
    let site = LOCATIONS.iter().find(|location| location.path == path)?;
    let name = percent_decode(query.strip_prefix("from=")?);
    let city = CITIES.iter().find(|city| city.name.as_bytes() == &*name)?;
    Some(latency(city, &site.city, fastrand::f64()))
}

/// Returns the latency between two cities. `chance` from 0 to 1 spreads the answers: most are near the ideal,
/// some are later.
fn latency(from: &City, to: &City, chance: f64) -> Duration {
    let ideal_ms = SERVER_MS + distance_km(from, to) * MS_PER_KM;
    Duration::from_secs_f64(ideal_ms * (0.97 + 0.25 * chance.powi(4)) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn far_cities_wait_longer() {
        let to = &LOCATIONS[0].city;
        let ms = |name: &str, chance: f64| {
            let city = CITIES.iter().find(|city| city.name == name).expect("a city of the list");
            latency(city, to, chance).as_secs_f64() * 1000.0
        };
        assert!(ms("Zurich", 0.0) < 10.0);
        assert!((80.0..100.0).contains(&ms("New York", 0.0)));
        assert!((120.0..180.0).contains(&ms("Tokyo", 1.0)));
        assert!(ms("Sydney", 0.0) > 200.0);
    }

    #[tokio::test]
    async fn a_site_answers_as_late_as_it_should() {
        let sites = Sites::start().await.expect("a free port");
        let target = Target::parse(&sites.urls()[0], true).expect("the demo's own URL");
        let client = target.client().expect("no TLS");
        for city in &CITIES[20..24] {
            let measured = target.measure(&client, city).await.expect("an answer");
            // Only the lower bound holds on a busy machine.
            assert!(measured >= latency(city, &LOCATIONS[0].city, 0.0), "{}: {measured:?}", city.name);
        }
    }
}
