//! Whether two classes of times have the same mean.

/// Percentiles of all times up to which times are kept: what interrupts a kernel takes long.
const KEPT: [u32; 5] = [100, 95, 90, 75, 50];

/// Times with fixed secrets, and with random ones, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Classes([Vec<f64>; 2]);

/// What the times say.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Runs by class, the fixed one first.
    pub counts: [usize; 2],
    /// Medians by class, in nanoseconds.
    pub medians: [f64; 2],
    /// Welch's t of largest magnitude.
    pub t: f64,
    /// The percentage of times that it was found among, the shortest ones.
    pub kept: u32,
}

impl Classes {
    /// Adds a time.
    pub fn add(&mut self, random: bool, nanos: f64) {
        self.0[usize::from(random)].push(nanos);
    }

    /// Tests the classes, without the longest times too.
    pub fn measured(&self) -> Measured {
        let mut all = self.0.concat();
        all.sort_by(f64::total_cmp);
        let tests = KEPT.map(|kept| {
            let limit = at_percent(&all, kept);
            let below = |class: &Vec<f64>| class.iter().copied().filter(|x| *x <= limit).collect();
            let [fixed, random]: [Vec<f64>; 2] = [below(&self.0[0]), below(&self.0[1])];
            (welch(&fixed, &random), kept)
        });
        let larger = |a: (f64, u32), b: (f64, u32)| if b.0.abs() > a.0.abs() { b } else { a };
        let (t, kept) = tests.into_iter().fold((0.0, 100), larger);
        let median = |class: &Vec<f64>| {
            let mut sorted = class.clone();
            sorted.sort_by(f64::total_cmp);
            at_percent(&sorted, 50)
        };
        let medians = [median(&self.0[0]), median(&self.0[1])];
        Measured { counts: [self.0[0].len(), self.0[1].len()], medians, t, kept }
    }
}

fn at_percent(sorted: &[f64], percent: u32) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent as usize / 100).copied().unwrap_or_default()
}

/// Welch's t, zero for classes too small to have a variance.
fn welch(a: &[f64], b: &[f64]) -> f64 {
    let moments = |class: &[f64]| {
        let count = class.len() as f64;
        let mean = class.iter().sum::<f64>() / count;
        let squares = class.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        (mean, squares / (count - 1.0) / count)
    };
    if a.len() < 2 || b.len() < 2 {
        return 0.0;
    }
    let ((mean_a, error_a), (mean_b, error_b)) = (moments(a), moments(b));
    let error = (error_a + error_b).sqrt();
    if error > 0.0 { (mean_a - mean_b) / error } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn welch_is_that_of_a_worked_example() {
        // Means 3 and 7, variances 2.5 and 10, five each.
        let t = welch(&[1.0, 2.0, 3.0, 4.0, 5.0], &[3.0, 5.0, 7.0, 9.0, 11.0]);
        assert!((t + 4.0 / 2.5f64.sqrt()).abs() < 1e-12, "{t}");
        assert!(welch(&[1.0], &[2.0, 3.0]) == 0.0);
    }

    #[test]
    fn a_difference_is_found_beside_long_interruptions() {
        let mut rng = Random::seeded(1);
        let mut classes = |extra: f64| {
            let mut classes = Classes::default();
            for i in 0..4000 {
                let random = rng.word() & 1 == 1;
                let noise = (rng.word() % 100) as f64 + if i % 50 == 0 { 1e6 } else { 0.0 };
                classes.add(random, 1000.0 + noise + if random { extra } else { 0.0 });
            }
            classes.measured()
        };
        let [same, different] = [classes(0.0), classes(10.0)];
        assert!(same.t.abs() < 4.5, "{same:?}");
        assert!(different.t < -6.0 && different.kept < 100, "{different:?}");
    }
}
