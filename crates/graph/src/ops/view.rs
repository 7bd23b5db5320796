//! Slices and transpositions.

use super::arrange::{last_viewed, shown, viewed};
use super::checks::{ensure, same_width};
use super::geometry::View;
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;

impl Operator for View {
    fn kind(&self) -> &'static str {
        "view"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let (input, output) = (site.input(), site.output);
        same_width(input, output)?;
        let inside = self.strides.len() == output.shape.len()
            && last_viewed(self, &output.shape).is_some_and(|last| last < input.len());
        ensure(inside, || format!("shows more than the {} elements", input.len()))?;
        Ok(input.format.signed)
    }

    fn arrangement(&self, site: &Site<'_>) -> Option<Vec<Option<usize>>> {
        Some(viewed(self, &site.output.shape).into_iter().map(Some).collect())
    }

    fn rearranges(&self) -> bool {
        true
    }

    fn listed(&self, site: &Site<'_>) -> usize {
        site.output.len()
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(shown(self.arrangement(site), inputs[0]))
    }

    /// A view shows values of the parts from its first element to its last.
    fn output(&self, site: &Site<'_>, inputs: &[Known]) -> Known {
        let tensor = site.input();
        let each = tensor.len() / tensor.shape[0].max(1);
        let last = last_viewed(self, &site.output.shape).unwrap_or(usize::MAX);
        let (mut start, mut seen): (usize, Option<Range>) = (0, None);
        for part in inputs[0].named_parts() {
            let end = start + part.length * each;
            if start <= last && self.start < end {
                seen = Some(seen.map_or(part.range, |range| range.join(part.range)));
            }
            start = end;
        }
        seen.unwrap_or(inputs[0].range).into()
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.width()
    }

    fn keeps_width(&self) -> bool {
        true
    }
}
