/**
 * Returns the candidate with the smallest edit distance to a text. Returns `undefined` if that distance exceeds a third of the
 * candidate's length.
 */
export function findNearest(text: string, candidates: readonly string[]): string | undefined {
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(text, candidate);
    if (distance <= candidate.length / 3 && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) {
      best = { candidate, distance };
    }
  }
  return best?.candidate;
}

/** Returns the end of an error message: `; did you mean slack?`, or an empty text if no candidate is similar. */
export function suggestNearest(text: string, candidates: readonly string[]): string {
  const nearest = findNearest(text, candidates);
  return nearest === undefined ? "" : `; did you mean ${nearest}?`;
}

/** Number of inserted, deleted, replaced and transposed letters. */
function editDistance(a: string, b: string): number {
  let beforePrevious: readonly number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substituted = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const isTransposed =
        row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const transposed = isTransposed ? (beforePrevious[column - 2] ?? 0) + 1 : substituted;
      current.push(
        Math.min(substituted, transposed, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1),
      );
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length] ?? 0;
}
