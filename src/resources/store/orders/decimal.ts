/** Maximum number of decimal places in amounts and rates. */
const MAX_DECIMALS = 4;
const ONE = 10n ** BigInt(MAX_DECIMALS);

/**
 * Adds two amounts without rounding. The result has the decimal places of the more precise amount: `"19.90"` and `"0.5"` give `"20.40"`.
 */
export const addDecimals = (a: string, b: string): string =>
  format(unitsOf(a) + unitsOf(b), Math.max(decimalsOf(a), decimalsOf(b)));

/**
 * Computes a percentage of an amount, rounded half up to four decimal places. The result has at least as many decimal
 * places as the amount: 12.5 percent of `"19.90"` is `"2.4875"`, and 10 percent is `"1.99"`.
 */
export function percentOf(amount: string, percent: string): string {
  const divisor = 100n * ONE;
  const units = (unitsOf(amount) * unitsOf(percent) + divisor / 2n) / divisor;
  const fraction = String(units % ONE).padStart(MAX_DECIMALS, "0");
  return format(units, Math.max(decimalsOf(amount), fraction.replace(/0+$/, "").length));
}

/** Parses a non-negative decimal number to an integer count of ten-thousandths. */
function unitsOf(decimal: string): bigint {
  const [whole = "", fraction = ""] = decimal.split(".");
  return BigInt(whole) * ONE + BigInt(fraction.padEnd(MAX_DECIMALS, "0"));
}

const decimalsOf = (decimal: string): number => decimal.split(".")[1]?.length ?? 0;

function format(units: bigint, decimals: number): string {
  const fraction = String(units % ONE).padStart(MAX_DECIMALS, "0");
  return decimals === 0 ? String(units / ONE) : `${units / ONE}.${fraction.slice(0, decimals)}`;
}
