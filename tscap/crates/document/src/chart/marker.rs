//! Markers: a shape for each look.

/// A marker about a place, as path data.
pub(super) fn at(style: usize, x: f64, y: f64) -> String {
    match style % super::STYLES {
        // circle
        0 => format!(
            "M{:.1} {y:.1}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
            x - 3.5
        ),
        // square
        1 => format!("M{:.1} {:.1}h6.4v6.4h-6.4z", x - 3.2, y - 3.2),
        // triangle
        2 => format!("M{x:.1} {:.1}l4.2 7.4h-8.4z", y - 4.6),
        // diamond
        3 => format!("M{x:.1} {:.1}l4.6 4.6l-4.6 4.6l-4.6 -4.6z", y - 4.6),
        // triangle on its point
        4 => format!("M{x:.1} {:.1}l4.2 -7.4h-8.4z", y + 4.6),
        // hourglass
        _ => format!("M{:.1} {:.1}h7l-7 7h7z", x - 3.5, y - 3.5),
    }
}

/// A marker at each place.
pub(super) fn all(style: usize, places: impl Iterator<Item = (f64, f64)>) -> String {
    places.map(|(x, y)| at(style, x, y)).collect()
}
