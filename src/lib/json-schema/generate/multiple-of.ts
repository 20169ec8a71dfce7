/**
 * Whether a number is a multiple of another one, by the decimals that JavaScript prints for both: 19.01 is one of 0.01, though
 * the binary numbers behind them are not. A number of more digits than a double holds (integers beyond 2^53) was rounded when it
 * was read, and is judged by what it was rounded to.
 */
export function isMultipleOf(value: number, divisor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0;
  const a = decimalOf(value);
  const b = decimalOf(divisor);
  if (a === undefined || b === undefined || b.digits === 0n) return false;
  const exponent = Math.min(a.exponent, b.exponent);
  return (
    (a.digits * 10n ** BigInt(a.exponent - exponent)) % (b.digits * 10n ** BigInt(b.exponent - exponent)) ===
    0n
  );
}

/** `digits × 10^exponent`; undefined for what has no decimals (JSON's `1e400` is read as Infinity). */
function decimalOf(value: number): { readonly digits: bigint; readonly exponent: number } | undefined {
  const [, whole, fraction = "", exponent = "0"] =
    /^-?(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  if (whole === undefined) return undefined;
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}
