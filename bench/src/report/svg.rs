//! A line chart as plain SVG: its title says what it shows, each line's name stands at its end, and it is readable on
//! a light and on a dark page.

use std::fmt::Write;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 56.0;
/// Where the lines end and their names begin.
const RIGHT: f64 = 560.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 316.0;
const NAME_HEIGHT: f64 = 15.0;
/// Told apart also by those who see no red or no green.
const COLOURS: [&str; 5] = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#8c6d00"];
const STYLE: &str = "text{font:12px sans-serif;fill:#333}.title{font-size:16px;font-weight:bold}.grid{stroke:#ddd}\
    @media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}}";

pub struct Chart {
    /// The conclusion, in figures.
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// Powers of ten are equally far apart. Then 0 stands at the bottom, where 1 is.
    pub is_logarithmic: bool,
    /// All on the same axes.
    pub series: Vec<Series>,
}

pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    pub fn to_svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x_axis = Axis::over(points().map(|point| point.0), false, (LEFT, RIGHT));
        let y_axis = Axis::over(points().map(|point| point.1), self.is_logarithmic, (BOTTOM, TOP));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\">\n<style>{STYLE}</style>\n"
        );
        text(&mut svg, (LEFT, 22.0), "start", "class=\"title\"", &self.title);
        text(&mut svg, (LEFT, 42.0), "start", "", &self.y_label);
        for tick in y_axis.ticks() {
            let y = y_axis.at(tick);
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>");
            text(&mut svg, (LEFT - 6.0, y + 4.0), "end", "", &super::count_or_fraction(tick));
        }
        for tick in x_axis.ticks() {
            text(&mut svg, (x_axis.at(tick), BOTTOM + 17.0), "middle", "", &super::count_or_fraction(tick));
        }
        text(&mut svg, ((LEFT + RIGHT) / 2.0, BOTTOM + 35.0), "middle", "", &self.x_label);
        for (series, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            let path: String =
                (series.points.iter()).map(|(x, y)| format!("{:.1},{:.1} ", x_axis.at(*x), y_axis.at(*y))).collect();
            let path = path.trim_end();
            let _ = writeln!(
                svg,
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
                 stroke-linejoin=\"round\"/>"
            );
        }
        for (at, y) in self.name_heights(&y_axis).into_iter().enumerate() {
            let style = format!("style=\"fill:{}\"", COLOURS[at % COLOURS.len()]);
            text(&mut svg, (RIGHT + 8.0, y + 4.0), "start", &style, &self.series[at].name);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Each name beside the end of its line, moved as far as it takes to stand below the one above.
    fn name_heights(&self, y_axis: &Axis) -> Vec<f64> {
        let end = |series: &Series| series.points.last().map_or(BOTTOM, |point| y_axis.at(point.1));
        let mut order: Vec<(usize, f64)> = self.series.iter().map(end).enumerate().collect();
        order.sort_by(|one, other| one.1.total_cmp(&other.1));
        let mut heights = vec![0.0; order.len()];
        // So low that all that come below have room above the bottom.
        let mut lowest = BOTTOM - NAME_HEIGHT * order.len().saturating_sub(1) as f64;
        let mut next = TOP;
        for (at, wanted) in order {
            heights[at] = wanted.min(lowest).max(next);
            next = heights[at] + NAME_HEIGHT;
            lowest += NAME_HEIGHT;
        }
        heights
    }
}

/// From 0 to a round number above the largest value; or from 1 to a power of ten.
struct Axis {
    end: f64,
    step: f64,
    is_logarithmic: bool,
    pixels: (f64, f64),
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, is_logarithmic: bool, pixels: (f64, f64)) -> Axis {
        let max = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        if is_logarithmic {
            return Axis { end: 10f64.powf(max.max(10.0).log10().ceil()), step: 10.0, is_logarithmic, pixels };
        }
        let step = round_step(max / 5.0);
        Axis { end: step * (max / step).ceil().max(1.0), step, is_logarithmic, pixels }
    }

    fn at(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => value.max(1.0).log10() / self.end.log10(),
            false => value / self.end,
        };
        self.pixels.0 + (self.pixels.1 - self.pixels.0) * share
    }

    fn ticks(&self) -> Vec<f64> {
        match self.is_logarithmic {
            true => (0..=self.end.log10().round() as i32).map(|power| 10f64.powi(power)).collect(),
            // Rounded, because 3 * 0.1 prints sixteen digits.
            false => (0..=(self.end / self.step).round() as u32)
                .map(|n| (f64::from(n) * self.step * 1e6).round() / 1e6)
                .collect(),
        }
    }
}

/// The least of 1, 2, 5, 10, 20 … and 0.5, 0.2, 0.1 … that is not below.
fn round_step(at_least: f64) -> f64 {
    if at_least <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(at_least.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * power >= at_least * 0.999_999).unwrap_or(10.0);
    digit * power
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, style: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{content}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_cover_the_values() {
        for (max, step) in
            [(0.0, 1.0), (5.0, 1.0), (7.0, 2.0), (0.3, 0.1), (99.0, 20.0), (100.0, 20.0), (30_000.0, 10_000.0)]
        {
            let axis = Axis::over([max].into_iter(), false, (0.0, 100.0));
            assert!((axis.step - step).abs() < 1e-9, "{max}: {}", axis.step);
            assert!(*axis.ticks().last().unwrap() >= max * 0.999_999);
        }
        assert_eq!(Axis::over([274.0].into_iter(), true, (0.0, 1.0)).ticks(), [1.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn every_point_lies_on_its_axis() {
        let mut random = fastrand::Rng::with_seed(9);
        let values: Vec<f64> = (0..200).map(|_| random.f64() * 10f64.powi(random.i32(-2..6))).collect();
        for is_logarithmic in [false, true] {
            let axis = Axis::over(values.iter().copied(), is_logarithmic, (BOTTOM, TOP));
            for value in &values {
                assert!((TOP - 0.01..=BOTTOM + 0.01).contains(&axis.at(*value)), "seed 9: {value}");
            }
        }
    }

    #[test]
    fn names_are_escaped_and_do_not_cover_each_other() {
        let series = |last: f64| Series { name: "a < b & c".into(), points: vec![(0.0, 1.0), (1.0, last)] };
        let chart = |lasts: &[f64]| Chart {
            title: "t".into(),
            x_label: "s".into(),
            y_label: "n".into(),
            is_logarithmic: true,
            series: lasts.iter().map(|last| series(*last)).collect(),
        };
        let svg = chart(&[5.0, 5.0]).to_svg();
        assert_eq!((svg.matches("a &lt; b &amp; c").count(), svg.matches("<polyline").count()), (2, 2));
        for lasts in [[5.0, 5.0, 5.0, 300.0], [1.0, 1.0, 1.0, 1.0], [900.0, 999.0, 1.0, 999.0]] {
            let axis = Axis::over(lasts.into_iter(), true, (BOTTOM, TOP));
            let mut heights = chart(&lasts).name_heights(&axis);
            heights.sort_by(f64::total_cmp);
            assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= NAME_HEIGHT - 0.01), "{heights:?}");
            assert!(heights[0] >= TOP && heights[3] <= BOTTOM + 0.01, "{heights:?}");
        }
    }
}
