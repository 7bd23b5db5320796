//! Models that tell of a score only the band in which it lies.

use crate::error::{Error, Result};
use crate::ir::{Format, Model, Node, NodeWeights, Nonlinear, Tensor, View};
use crate::model::verify_model;
use crate::ops::bands::MAX_EDGES;
use crate::ops::{Bands, Range};

const NAME: &str = "bands";
/// The name of the node that takes the score from the results of two classes.
const SCORE: &str = "bands.score";

impl Model {
    /// The model whose result is the number of `edges` that are not above the score: band 0 lies
    /// below all edges. Edges are in the real units of the score and remain the server's secret;
    /// their number is public.
    ///
    /// The score is the result of a model with one, and the second of two classes.
    ///
    /// # Errors
    /// [`Error::Misuse`] for edges that do not rise, or are no numbers;
    /// [`Error::Unsupported`] for models with other results, and for suites without bands.
    pub fn banded(mut self, edges: &[f64]) -> Result<Self> {
        check(edges)?;
        let graph = &self.graph;
        if graph.exact.is_some() || graph.nonlinear == Nonlinear::Gc {
            let why = format!("cannot reveal bands in suite {}", graph.suite);
            return Err(unsupported(graph.name.clone(), why, "compile it with --suite auto"));
        }
        let (index, output) = (graph.output, &graph.tensors[graph.output]);
        let (score, format) = match output.len() {
            1 => (index, output.format),
            2 => (self.second(index), self.graph.tensors[index].format),
            results => {
                let why = format!("has {results} results, and bands are of one score");
                let instead = "reveal the label, or compile it with one result (--result)";
                return Err(unsupported(graph.name.clone(), why, instead));
            }
        };
        let most = Bands::largest_edge(format.bits);
        let integer = |edge: &f64| ((edge / format.scale).ceil() as i64).clamp(-most, most);
        let bias: Vec<i64> = edges.iter().map(integer).collect();
        let bits = Range::new(0, bias.len() as i128).difference_width();
        let format = Format { bits, scale: 1.0, signed: false };
        let op = Bands { edges: bias.len() };
        let shape = self.graph.tensors[score].shape.clone();
        let band = self.push(NAME, op, score, Tensor { name: NAME.into(), shape, format });
        let place = self.graph.nodes.len() - 1;
        self.weights.insert(place, NodeWeights { weight: Vec::new(), bias });
        self.graph.output = band;
        self.graph.outputs.clear();
        self.graph.labels.clear();
        self.graph.link = None;
        verify_model(&self).map_err(|error| error.in_pass(NAME))?;
        Ok(self)
    }

    /// Adds a node that shows the second value of a tensor of two.
    fn second(&mut self, of: usize) -> usize {
        let Tensor { format, .. } = self.graph.tensors[of];
        let view = View { start: 1, strides: vec![1] };
        self.push(SCORE, view, of, Tensor { name: SCORE.into(), shape: vec![1], format })
    }

    /// Adds a node at the end, and the tensor that it writes, whose index it returns.
    fn push(
        &mut self,
        name: &str,
        op: impl Into<crate::ir::Op>,
        input: usize,
        output: Tensor,
    ) -> usize {
        let index = self.graph.tensors.len();
        self.graph.tensors.push(output);
        let (name, op, inputs) = (name.into(), op.into(), vec![input]);
        self.graph.nodes.push(Node { name, op, inputs, output: index });
        index
    }
}

/// Edges rise and are finite, and there are 1 to 64.
fn check(edges: &[f64]) -> Result<()> {
    let rise = edges.windows(2).all(|pair| pair[0] < pair[1]);
    if !rise || !edges.iter().all(|edge| edge.is_finite()) {
        return Err(Error::Misuse("edges of bands are finite numbers that rise".into()));
    }
    if !(1..=MAX_EDGES).contains(&edges.len()) {
        let count = edges.len();
        return Err(Error::Misuse(format!(
            "{count} edges of bands, there may be 1 to {MAX_EDGES}"
        )));
    }
    Ok(())
}

fn unsupported(name: String, why: String, instead: &str) -> Error {
    Error::unsupported(&name, why, instead)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::interpret::interpret;
    use crate::trees::Ensemble;

    /// A single test of one feature: `left` below 0.5, `right` from there on.
    fn ensemble(left: f64, right: f64) -> Ensemble {
        let threshold = 0.5f32.to_bits();
        let text = format!(
            r#"{{"name":"t","features":1,"outputs":1,"values":1,"base":[0.0],"divisor":1.0,
            "ties_left":false,"trees":[{{"feature":[0,-1,-1],"threshold":[{threshold},0,0],
            "missing_left":[true,false,false],"left":[1,0,0],"right":[2,0,0],
            "value":[0.0,{left:?},{right:?}]}}]}}"#
        );
        Ensemble::from_json(&text).unwrap()
    }

    #[test]
    fn bands_count_the_edges_that_are_not_above_the_score() {
        for (score, band) in [(-3.0, 0), (-1.0, 1), (-0.5, 1), (0.0, 2), (2.75, 2), (3.0, 3)] {
            let model = ensemble(score, score).lower("auto").unwrap();
            let banded = model.banded(&[-1.0, 0.0, 3.0]).unwrap();
            let key = crate::keys::key(0.25);
            assert_eq!(interpret(&banded, &[key]).unwrap(), [band], "{score}");
        }
    }

    #[test]
    fn edges_beyond_all_scores_are_moved_to_the_end_of_the_ring() {
        let model = ensemble(-1.0, 1.0).lower("auto").unwrap();
        let banded = model.banded(&[-1e30, 1e30]).unwrap();
        assert_eq!(interpret(&banded, &[crate::keys::key(1.0)]).unwrap(), [1]);
    }

    #[test]
    fn edges_that_are_none_are_refused() {
        let many: Vec<f64> = (0..65).map(f64::from).collect();
        for edges in [&[][..], &[1.0, 1.0], &[2.0, 1.0], &[f64::NAN], &[f64::INFINITY], &many] {
            let model = ensemble(-1.0, 1.0).lower("auto").unwrap();
            assert!(matches!(model.banded(edges), Err(Error::Misuse(_))), "{edges:?}");
        }
    }
}
