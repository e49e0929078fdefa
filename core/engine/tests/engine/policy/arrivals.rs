//! The sources of inserts.

use fastrand::Rng;

#[derive(Clone, Copy, Debug)]
pub struct OpenArrival {
    pub at_us: u64,
    pub table: usize,
}

/// A writer that waits for each insert before it sends the next.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// The table of its inserts; with `None` another one each time, drawn by popularity.
    pub table: Option<usize>,
    pub starts_at_us: u64,
    /// The shortest time from the answer to the next insert. A random time with the mean
    /// `pause_extra_mean_us` is added.
    pub pause_at_least_us: u64,
    pub pause_extra_mean_us: f64,
}

/// The spread of inserts over the tables.
#[derive(Clone, Debug)]
pub struct Popularity {
    /// Sums of the shares of the tables up to and including this one.
    sums: Vec<f64>,
}

impl Popularity {
    pub fn even(tables: usize) -> Self {
        Popularity::zipf(tables, 0.0)
    }

    /// Returns a spread in which the table in place `n` gets inserts in proportion to `n` to the power of `-s`.
    pub fn zipf(tables: usize, s: f64) -> Self {
        let mut sum = 0.0;
        let share = |place: usize| {
            sum += (place as f64).powf(-s);
            sum
        };
        Popularity { sums: (1..=tables).map(share).collect() }
    }

    pub fn tables(&self) -> usize {
        self.sums.len()
    }

    pub fn draw(&self, rng: &mut Rng) -> usize {
        let drawn = rng.f64() * self.sums[self.sums.len() - 1];
        self.sums.partition_point(|sum| *sum <= drawn)
    }
}

pub fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    // 1 - f64() is in (0, 1], so the logarithm is finite.
    -(1.0 - rng.f64()).ln() * mean
}

/// Returns random arrivals, as from many independent senders.
pub fn poisson(seed: u64, table: usize, rate: f64, count: usize) -> Vec<OpenArrival> {
    let mut rng = Rng::with_seed(seed);
    let mut at = 0.0;
    let next = |_| {
        at += exponential(&mut rng, 1e6 / rate);
        OpenArrival { at_us: at as u64, table }
    };
    (0..count).map(next).collect()
}

/// Returns random arrivals of all tables together.
pub fn spread(seed: u64, popularity: &Popularity, rate: f64, count: usize) -> Vec<OpenArrival> {
    let mut rng = Rng::with_seed(!seed);
    let mut arrivals = poisson(seed, 0, rate, count);
    for arrival in &mut arrivals {
        arrival.table = popularity.draw(&mut rng);
    }
    arrivals
}

/// Returns the arrivals of one sender on a timer.
pub fn even(table: usize, rate: f64, count: usize) -> Vec<OpenArrival> {
    (1..=count).map(|i| OpenArrival { at_us: (i as f64 * 1e6 / rate) as u64, table }).collect()
}

/// Returns random arrivals that all fall into the first part of each period.
pub fn bursty(seed: u64, table: usize, rate: f64, count: usize, period_us: f64, on_share: f64) -> Vec<OpenArrival> {
    let on_us = period_us * on_share;
    let mut arrivals = poisson(seed, table, rate / on_share, count);
    for arrival in &mut arrivals {
        let busy_us = arrival.at_us as f64;
        let period = (busy_us / on_us).floor();
        arrival.at_us = (period * period_us + busy_us - period * on_us) as u64;
    }
    arrivals
}
