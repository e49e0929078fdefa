//! Line charts as plain SVG: panels side by side over one legend, in the manner of the article whose runs they repeat.

use std::fmt::Write;

const PANEL_WIDTH: f64 = 330.0;
const PANEL_HEIGHT: f64 = 250.0;
const MARGIN_LEFT: f64 = 52.0;
const MARGIN_RIGHT: f64 = 14.0;
const MARGIN_TOP: f64 = 34.0;
const MARGIN_BOTTOM: f64 = 36.0;
const TITLE_HEIGHT: f64 = 34.0;
const LEGEND_LINE_HEIGHT: f64 = 18.0;
/// Told apart also by those who see no red or no green.
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

pub struct Chart {
    pub title: String,
    pub x_label: String,
    pub panels: Vec<Panel>,
}

pub struct Panel {
    pub title: String,
    pub series: Vec<Series>,
}

pub struct Series {
    pub label: String,
    /// Series of one colour belong together; the dashed one is the lesser.
    pub colour: usize,
    pub dashed: bool,
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    pub fn to_svg(&self) -> String {
        let legend = self.legend();
        let width = PANEL_WIDTH * self.panels.len() as f64;
        let height = TITLE_HEIGHT + PANEL_HEIGHT + LEGEND_LINE_HEIGHT * legend.len() as f64 + 10.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        text(
            &mut svg,
            TextAnchor { x: MARGIN_LEFT, y: 22.0, anchor: "start" },
            "font-size=\"15\" font-weight=\"bold\"",
            &self.title,
        );
        for (at, panel) in self.panels.iter().enumerate() {
            let _ = writeln!(svg, "<g transform=\"translate({:.1},{TITLE_HEIGHT})\">", PANEL_WIDTH * at as f64);
            panel.draw(&mut svg, &self.x_label);
            svg.push_str("</g>\n");
        }
        for (at, series) in legend.iter().enumerate() {
            let y = TITLE_HEIGHT + PANEL_HEIGHT + LEGEND_LINE_HEIGHT * (at as f64 + 0.5);
            line(&mut svg, (MARGIN_LEFT, y), (MARGIN_LEFT + 26.0, y), &series.stroke());
            text(&mut svg, TextAnchor { x: MARGIN_LEFT + 33.0, y: y + 4.0, anchor: "start" }, "", &series.label);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Every series once, though several panels show it.
    fn legend(&self) -> Vec<&Series> {
        let mut legend: Vec<&Series> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if !legend.iter().any(|known| known.label == series.label) {
                legend.push(series);
            }
        }
        legend
    }
}

impl Panel {
    fn draw(&self, svg: &mut String, x_label: &str) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x_axis = Axis::over(points().map(|point| point.0), MARGIN_LEFT, PANEL_WIDTH - MARGIN_RIGHT);
        let y_axis = Axis::over(points().map(|point| point.1), PANEL_HEIGHT - MARGIN_BOTTOM, MARGIN_TOP);
        text(
            svg,
            TextAnchor { x: MARGIN_LEFT, y: 20.0, anchor: "start" },
            "font-weight=\"bold\" fill=\"#333333\"",
            &self.title,
        );
        for tick in y_axis.ticks() {
            let y = y_axis.at(tick);
            line(svg, (MARGIN_LEFT, y), (PANEL_WIDTH - MARGIN_RIGHT, y), "stroke=\"#e0e0e0\"");
            text(
                svg,
                TextAnchor { x: MARGIN_LEFT - 6.0, y: y + 4.0, anchor: "end" },
                "fill=\"#555555\"",
                &tick.to_string(),
            );
        }
        for tick in x_axis.ticks() {
            let place = TextAnchor { x: x_axis.at(tick), y: PANEL_HEIGHT - MARGIN_BOTTOM + 15.0, anchor: "middle" };
            text(svg, place, "fill=\"#555555\"", &tick.to_string());
        }
        let middle = (MARGIN_LEFT + PANEL_WIDTH - MARGIN_RIGHT) / 2.0;
        text(svg, TextAnchor { x: middle, y: PANEL_HEIGHT - 6.0, anchor: "middle" }, "fill=\"#555555\"", x_label);
        for series in &self.series {
            series.draw(svg, &x_axis, &y_axis);
        }
    }
}

impl Series {
    fn stroke(&self) -> String {
        let dashes = if self.dashed { " stroke-dasharray=\"4 3\"" } else { "" };
        format!("fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{dashes}", COLOURS[self.colour % COLOURS.len()])
    }

    fn draw(&self, svg: &mut String, x_axis: &Axis, y_axis: &Axis) {
        let mut points = String::new();
        for (x, y) in &self.points {
            let _ = write!(points, "{:.1},{:.1} ", x_axis.at(*x), y_axis.at(*y));
        }
        let _ =
            writeln!(svg, "<polyline points=\"{}\" stroke-linejoin=\"round\" {}/>", points.trim_end(), self.stroke());
    }
}

/// From 0 to a round number above the largest value.
struct Axis {
    step: f64,
    steps: u32,
    from_pixel: f64,
    to_pixel: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, from_pixel: f64, to_pixel: f64) -> Axis {
        let max = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let step = round_step(max / 5.0);
        Axis { step, steps: ((max / step).ceil() as u32).max(1), from_pixel, to_pixel }
    }

    fn at(&self, value: f64) -> f64 {
        let share = value / (self.step * f64::from(self.steps));
        self.from_pixel + (self.to_pixel - self.from_pixel) * share
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        // Rounded, because 3 * 0.1 prints sixteen digits.
        (0..=self.steps).map(|n| (f64::from(n) * self.step * 1e6).round() / 1e6)
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

struct TextAnchor {
    x: f64,
    y: f64,
    anchor: &'static str,
}

fn text(svg: &mut String, place: TextAnchor, style: &str, content: &str) {
    let TextAnchor { x, y, anchor } = place;
    let content = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{content}</text>");
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), style: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(svg, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_cover_the_values() {
        for (max, step) in
            [(0.0, 1.0), (5.0, 1.0), (7.0, 2.0), (0.3, 0.1), (99.0, 20.0), (100.0, 20.0), (30_000.0, 10_000.0)]
        {
            let axis = Axis::over([max].into_iter(), 0.0, 100.0);
            assert!((axis.step - step).abs() < 1e-9, "{max}: {}", axis.step);
            assert!(axis.ticks().last().unwrap() >= max * 0.999_999);
        }
    }

    #[test]
    fn every_point_lies_inside_its_panel() {
        let mut random = fastrand::Rng::with_seed(9);
        let values: Vec<f64> = (0..200).map(|_| random.f64() * 10f64.powi(random.i32(-2..6))).collect();
        let axis = Axis::over(values.iter().copied(), PANEL_HEIGHT - MARGIN_BOTTOM, MARGIN_TOP);
        for value in values {
            assert!((MARGIN_TOP - 0.01..=PANEL_HEIGHT - MARGIN_BOTTOM).contains(&axis.at(value)), "seed 9: {value}");
        }
    }

    #[test]
    fn labels_are_escaped_and_listed_once() {
        let series =
            |dashed| Series { label: "a < b & c".into(), colour: 0, dashed, points: vec![(0.0, 1.0), (1.0, 2.0)] };
        let panel = || Panel { title: "p".into(), series: vec![series(false)] };
        let svg = Chart { title: "t".into(), x_label: "s".into(), panels: vec![panel(), panel()] }.to_svg();
        assert_eq!(svg.matches("a &lt; b &amp; c").count(), 1);
        assert_eq!(svg.matches("<polyline").count(), 2);
    }
}
