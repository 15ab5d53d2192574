//! A straight line.

/// Slope and intercept of the least-squares line.
pub fn fit(points: &[(f64, f64)]) -> (f64, f64) {
    let mean =
        |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let products: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = products / squares;
    (slope, y - slope * x)
}
