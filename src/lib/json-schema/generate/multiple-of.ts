/**
 * Returns whether a number is a multiple of another, based on the decimal digits that JavaScript prints for both. For example,
 * 19.01 is a multiple of 0.01, although their binary values are not multiples.
 *
 * Parsing has already rounded a number with more digits than a double can represent, such as an integer beyond 2^53. The result is
 * for the rounded number.
 */
export function isMultipleOf(value: number, divisor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0;
  const a = parseDecimal(value);
  const b = parseDecimal(divisor);
  if (a === undefined || b === undefined || b.digits === 0n) return false;
  const exponent = Math.min(a.exponent, b.exponent);
  return (
    (a.digits * 10n ** BigInt(a.exponent - exponent)) % (b.digits * 10n ** BigInt(b.exponent - exponent)) ===
    0n
  );
}

/** Splits a number into `digits × 10^exponent`. Returns `undefined` for Infinity, which `JSON.parse` returns for `1e400`. */
function parseDecimal(value: number): { readonly digits: bigint; readonly exponent: number } | undefined {
  const [, whole, fraction = "", exponent = "0"] =
    /^-?(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  if (whole === undefined) return undefined;
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}
