//! The cities of the probes, and their distances to a site.

#[derive(Debug, Clone, Copy)]
pub(crate) struct City {
    pub name: &'static str,
    pub country: &'static str,
    pub latitude: f64,
    pub longitude: f64,
}

const fn city(name: &'static str, country: &'static str, latitude: f64, longitude: f64) -> City {
    City { name, country, latitude, longitude }
}

/// The cities in the order in which they are shown: from west to east.
pub(crate) const CITIES: [City; 40] = [
    city("San Francisco", "US", 37.77, -122.42),
    city("Seattle", "US", 47.61, -122.33),
    city("Los Angeles", "US", 34.05, -118.24),
    city("Denver", "US", 39.74, -104.99),
    city("Mexico City", "MX", 19.43, -99.13),
    city("Dallas", "US", 32.78, -96.80),
    city("Chicago", "US", 41.88, -87.63),
    city("Atlanta", "US", 33.75, -84.39),
    city("Miami", "US", 25.76, -80.19),
    city("Toronto", "CA", 43.65, -79.38),
    city("Bogotá", "CO", 4.71, -74.07),
    city("New York", "US", 40.71, -74.01),
    city("Montreal", "CA", 45.50, -73.57),
    city("Santiago", "CL", -33.45, -70.67),
    city("Buenos Aires", "AR", -34.60, -58.38),
    city("São Paulo", "BR", -23.55, -46.63),
    city("Lisbon", "PT", 38.72, -9.14),
    city("Dublin", "IE", 53.35, -6.26),
    city("Madrid", "ES", 40.42, -3.70),
    city("London", "GB", 51.51, -0.13),
    city("Paris", "FR", 48.86, 2.35),
    city("Lagos", "NG", 6.52, 3.38),
    city("Amsterdam", "NL", 52.37, 4.90),
    city("Zurich", "CH", 47.38, 8.54),
    city("Milan", "IT", 45.46, 9.19),
    city("Berlin", "DE", 52.52, 13.40),
    city("Stockholm", "SE", 59.33, 18.07),
    city("Warsaw", "PL", 52.23, 21.01),
    city("Helsinki", "FI", 60.17, 24.94),
    city("Johannesburg", "ZA", -26.20, 28.05),
    city("Nairobi", "KE", -1.29, 36.82),
    city("Dubai", "AE", 25.20, 55.27),
    city("Mumbai", "IN", 19.08, 72.88),
    city("Bengaluru", "IN", 12.97, 77.59),
    city("Jakarta", "ID", -6.21, 106.85),
    city("Singapore", "SG", 1.35, 103.82),
    city("Hong Kong", "HK", 22.32, 114.17),
    city("Seoul", "KR", 37.57, 126.98),
    city("Tokyo", "JP", 35.68, 139.69),
    city("Sydney", "AU", -33.87, 151.21),
];

/// Returns the distance along the surface of the Earth.
pub(crate) fn distance_km(from: &City, to: &City) -> f64 {
    const EARTH_RADIUS_KM: f64 = 6371.0;
    let half_chord = |a: f64, b: f64| ((b - a).to_radians() / 2.0).sin().powi(2);
    let cosines = from.latitude.to_radians().cos() * to.latitude.to_radians().cos();
    let chord = half_chord(from.latitude, to.latitude) + cosines * half_chord(from.longitude, to.longitude);
    2.0 * EARTH_RADIUS_KM * chord.sqrt().min(1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn named(name: &str) -> &'static City {
        CITIES.iter().find(|city| city.name == name).expect("a city of the list")
    }

    #[test]
    fn cities_are_distinct_and_on_earth() {
        assert_eq!(CITIES.iter().map(|city| city.name).collect::<HashSet<_>>().len(), CITIES.len());
        for city in &CITIES {
            assert!(city.latitude.abs() <= 90.0 && city.longitude.abs() <= 180.0, "{}", city.name);
            assert_eq!(city.country.len(), 2, "{}", city.name);
        }
    }

    #[test]
    fn distances_are_known_ones() {
        for (from, to, km) in [
            ("London", "Paris", 344.0),
            ("New York", "London", 5570.0),
            ("Sydney", "Tokyo", 7820.0),
            ("Paris", "Paris", 0.0),
        ] {
            let distance = distance_km(named(from), named(to));
            assert!((distance - km).abs() <= km * 0.01 + 0.001, "{from} to {to}: {distance}");
        }
    }
}
