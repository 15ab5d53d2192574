//! A straight line through points.

use super::mean;

/// Slope and intercept of the least-squares line through points (x, y); a line without
/// slope through points that all have the same x.
pub fn least_squares(points: &[(f64, f64)]) -> (f64, f64) {
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x, y) = (mean(&xs), mean(&ys));
    let products: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let squares: f64 = xs.iter().map(|each| (each - x).powi(2)).sum();
    let slope = if squares == 0.0 {
        0.0
    } else {
        products / squares
    };
    (slope, y - slope * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_its_points() {
        let (slope, intercept) = least_squares(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]);
        assert!((slope - 2.0).abs() < 1e-12 && (intercept - 1.0).abs() < 1e-12);
        assert_eq!(least_squares(&[(1.0, 2.0), (1.0, 4.0)]), (0.0, 3.0));
    }
}
