//! Faults on purpose: the effects of a bad network on an append, by seed.

use std::str::FromStr;
use std::time::Duration;

use fastrand::Rng;

/// The rates at which the sender misbehaves. Written and read as
/// `seed=1,delay_ms=20,drop=0.1,repeat=0.1,reorder=0.2,cut=0.05`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    pub seed: u64,
    /// The longest time that a batch waits before it is sent.
    pub delay_ms: u64,
    /// The share of attempts whose connection is closed in the middle of the body.
    pub drop: f64,
    /// The share of batches that are sent again after their answer.
    pub repeat: f64,
    /// The share of cases in which another batch goes first.
    pub reorder: f64,
    /// The share of attempts whose connection is closed before the answer.
    pub cut: f64,
}

/// The faults of one attempt to send a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fate {
    pub(crate) delay: Duration,
    pub(crate) drop: bool,
    pub(crate) repeat: bool,
    pub(crate) cut: bool,
}

impl Faults {
    /// Returns the faults of an attempt. They depend on number and attempt, not on when these come, so that a
    /// seed means the same every time.
    pub(crate) fn fate(&self, number: u64, attempt: u32) -> Fate {
        let mut random = self.random(number, attempt);
        Fate {
            delay: Duration::from_millis(random.u64(0..=self.delay_ms)),
            drop: random.f64() < self.drop,
            repeat: random.f64() < self.repeat,
            cut: random.f64() < self.cut,
        }
    }

    pub(crate) fn random(&self, number: u64, attempt: u32) -> Rng {
        Rng::with_seed(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(attempt) << 48))
    }
}

impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Faults, String> {
        let mut faults = Faults::default();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("'{pair}' is no name=value"))?;
            let whole = || value.parse::<u64>().map_err(|_| format!("{name}: '{value}' is no whole number"));
            let share = || match value.parse::<f64>() {
                Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
                _ => Err(format!("{name}: '{value}' is no share from 0 to below 1")),
            };
            match name {
                "seed" => faults.seed = whole()?,
                "delay_ms" => faults.delay_ms = whole()?.min(60_000),
                "drop" => faults.drop = share()?,
                "repeat" => faults.repeat = share()?,
                "reorder" => faults.reorder = share()?,
                "cut" => faults.cut = share()?,
                _ => {
                    return Err(format!(
                        "there is no fault '{name}'; there are seed, delay_ms, drop, repeat, reorder, cut"
                    ))
                }
            }
        }
        Ok(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_written_and_repeat_by_seed() {
        let faults: Faults = "seed=1,delay_ms=20,drop=0.1,repeat=0.1,reorder=0.2,cut=0.05".parse().unwrap();
        assert_eq!((faults.seed, faults.delay_ms, faults.cut), (1, 20, 0.05));
        let fates: Vec<Fate> = (0..1000).map(|number| faults.fate(number, 0)).collect();
        assert_eq!(fates, (0..1000).map(|number| faults.fate(number, 0)).collect::<Vec<_>>());
        let dropped = fates.iter().filter(|fate| fate.drop).count();
        assert!((50..150).contains(&dropped), "{dropped} of 1000 dropped");
        for bad in ["drop=1", "drop=-1", "drop=x", "seed", "speed=1"] {
            assert!(bad.parse::<Faults>().is_err(), "{bad}");
        }
    }
}
