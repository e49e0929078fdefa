//! Faults on purpose, for tests of those who append: what networks do now and then is done often.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// What may happen to a batch, and how often.
#[derive(Debug)]
pub(crate) struct Faults {
    delay_ms: u64,
    drop: f64,
    repeat: f64,
    reorder: f64,
    cut: f64,
    random: Mutex<fastrand::Rng>,
}

/// What happens to one batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fault {
    pub(super) delay: Duration,
    /// The body is thrown away and the connection closed.
    pub(super) drops: bool,
    /// It is handled twice.
    pub(super) repeats: bool,
    /// It is kept, and the connection closed without an answer.
    pub(super) cuts: bool,
}

/// One that is held back lets so many delays' worth of others pass.
const REORDERED_DELAYS: u64 = 4;

impl Faults {
    /// `seed=1,delay_ms=20,drop=0.1,repeat=0.1,reorder=0.2,cut=0.05`; an empty text has none.
    pub(crate) fn parse(text: &str) -> Result<Option<Faults>, String> {
        let (mut seed, mut delay_ms, mut shares) = (0, 0, [0.0; 4]);
        const SHARES: [&str; 4] = ["drop", "repeat", "reorder", "cut"];
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let bad =
                || format!("append.faults: `{part}` is none of seed=N, delay_ms=N, drop, repeat, reorder, cut=0..1");
            let (name, value) = part.split_once('=').ok_or_else(bad)?;
            match (name.trim(), SHARES.iter().position(|share| *share == name.trim())) {
                ("seed", _) => seed = value.trim().parse().map_err(|_| bad())?,
                ("delay_ms", _) => delay_ms = value.trim().parse().ok().filter(|&ms| ms <= 60_000).ok_or_else(bad)?,
                (_, Some(at)) => {
                    let share = value.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share));
                    shares[at] = share.ok_or_else(bad)?;
                }
                _ => return Err(bad()),
            }
        }
        let [drop, repeat, reorder, cut] = shares;
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        let is_any = delay_ms > 0 || shares.iter().any(|share| *share > 0.0);
        Ok(is_any.then_some(Faults { delay_ms, drop, repeat, reorder, cut, random }))
    }

    pub(super) fn next(&self) -> Fault {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut happens = |share: f64| random.f64() < share;
        let (drops, repeats, reorders, cuts) =
            (happens(self.drop), happens(self.repeat), happens(self.reorder), happens(self.cut));
        let most_ms = match reorders {
            true => self.delay_ms.max(5) * REORDERED_DELAYS,
            false => self.delay_ms,
        };
        let delay = Duration::from_micros(random.u64(0..=most_ms * 1000));
        Fault { delay, drops, repeats, cuts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read() {
        assert!(Faults::parse("").unwrap().is_none());
        assert!(Faults::parse("seed=4").unwrap().is_none());
        let faults = Faults::parse("seed=1, delay_ms=20,drop=0.1,repeat=1,reorder=0.2,cut=0.05").unwrap().unwrap();
        assert_eq!((faults.delay_ms, faults.drop, faults.repeat, faults.cut), (20, 0.1, 1.0, 0.05));
        assert!((0..100).all(|_| faults.next().repeats && faults.next().delay <= Duration::from_millis(80)));
        for bad in ["x", "drop=2", "drop=-1", "drop=NaN", "delay_ms=x", "delay_ms=99999999", "lose=0.1"] {
            assert!(Faults::parse(bad).is_err(), "{bad}");
        }
    }
}
