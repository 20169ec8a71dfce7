/**
 * Whether a number is a multiple of another, using the decimals that JavaScript prints for both. 19.01 is a multiple of 0.01, although
 * their binary values are not. Numbers with more digits than a double can represent (such as integers beyond 2^53) were rounded during
 * parsing, and the rounded value is used.
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

/** Parses a number as `digits × 10^exponent`; `undefined` for Infinity, which JSON's `1e400` becomes. */
function parseDecimal(value: number): { readonly digits: bigint; readonly exponent: number } | undefined {
  const [, whole, fraction = "", exponent = "0"] =
    /^-?(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  if (whole === undefined) return undefined;
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}
