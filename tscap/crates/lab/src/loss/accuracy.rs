//! How good the model was.

use super::schema::{Accuracy, Point};
use tscap_statistics::median;

/// Shares lost at which it is hard to be right.
const HARD: std::ops::RangeInclusive<f64> = 0.05..=0.6;

/// Judges it by the points that it predicted; `None` without any.
pub fn accuracy(points: &[Point]) -> Option<Accuracy> {
    let pairs = points.iter().filter_map(|point| {
        let predicted = point.predicted?;
        Some((predicted.lost(), point.run.loss()))
    });
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let measured: Vec<f64> = pairs.iter().map(|(_, measured)| *measured).collect();
    // The median has the least mean error of all constants.
    let median = median(&measured)?;
    let mean = |errors: &mut dyn Iterator<Item = f64>| errors.sum::<f64>() / pairs.len() as f64;
    let errors = pairs
        .iter()
        .map(|(predicted, measured)| predicted - measured);
    let of_constant = measured.iter().map(|measured| median - measured);
    let hard = measured.iter().filter(|loss| HARD.contains(*loss)).count();
    Some(Accuracy {
        points: pairs.len() as u32,
        between: hard as f64 / pairs.len() as f64,
        error: 100.0 * mean(&mut errors.map(f64::abs)),
        error_of_constant: 100.0 * mean(&mut of_constant.map(f64::abs)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::fixtures::sweep;

    fn point(lost: u64, predicted: Option<f64>) -> Point {
        let mut point = sweep().points[0].clone();
        point.run.sent = 1_000;
        point.run.lost = tscap_traffic::load::Lost {
            before: lost,
            ..Default::default()
        };
        point.predicted =
            predicted.map(|ring| crate::loss::schema::PredictedLoss { before: 0.0, ring });
        point
    }

    #[test]
    fn errors_are_in_points_of_loss() {
        let points = [
            point(100, Some(0.15)),
            point(300, Some(0.3)),
            point(900, Some(0.8)),
            point(0, None),
        ];
        let accuracy = accuracy(&points).unwrap();
        assert_eq!(accuracy.points, 3);
        assert!((accuracy.error - 5.0).abs() < 1e-9, "{accuracy:?}");
        // Always 30 %: off by 20, 0 and 60.
        assert!(
            (accuracy.error_of_constant - 80.0 / 3.0).abs() < 1e-9,
            "{accuracy:?}"
        );
        assert!((accuracy.between - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_predicted_is_nothing_judged() {
        assert_eq!(accuracy(&[point(100, None)]), None);
        assert_eq!(accuracy(&[]), None);
    }
}
