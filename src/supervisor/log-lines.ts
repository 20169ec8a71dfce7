/** Longest incomplete line that is kept, in characters. */
const MAX_LINE = 1024 * 1024;

/**
 * Returns a receiver for the output of one process that writes only whole lines, so that the lines of several processes do not mix.
 *
 * @param write called with one or more whole lines
 */
export function createLineWriter(write: (lines: string) => void): (chunk: string) => void {
  let rest = "";
  return (chunk) => {
    const end = chunk.lastIndexOf("\n") + 1;
    if (end === 0 && rest.length + chunk.length < MAX_LINE) {
      rest += chunk;
      return;
    }
    write(rest + (end === 0 ? `${chunk}\n` : chunk.slice(0, end)));
    rest = end === 0 ? "" : chunk.slice(end);
  };
}
