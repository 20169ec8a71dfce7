/** RE2 refuses higher counts in `{n,m}`. */
const MAX_COUNT = 1000;

/** `atom{least,most}` in RE2's syntax; counts past what RE2 takes become a row of repetitions. */
export function repeat(atom: string, least: number, most: number): string {
  if (most <= MAX_COUNT) return `${atom}{${least},${most}}`;
  if (most === Number.POSITIVE_INFINITY) {
    return least <= MAX_COUNT ? `${atom}{${least},}` : `(?:${exactly(atom, least)}${atom}*)`;
  }
  return `(?:${exactly(atom, least)}${upTo(atom, most - least)})`;
}

const exactly = (atom: string, count: number): string => row(atom, count, (part) => `{${part}}`);

const upTo = (atom: string, count: number): string => row(atom, count, (part) => `{0,${part}}`);

function row(atom: string, count: number, quantifier: (part: number) => string): string {
  const parts = [...Array<number>(Math.floor(count / MAX_COUNT)).fill(MAX_COUNT), count % MAX_COUNT];
  return parts.map((part) => (part === 0 ? "" : atom + quantifier(part))).join("");
}
