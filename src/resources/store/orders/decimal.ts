/** Decimals that amounts and rates have at most. */
const MAX_DECIMALS = 4;
const ONE = 10n ** BigInt(MAX_DECIMALS);

/** The sum of two amounts, exact, with as many decimals as the one that has more of them: `"19.90"` and `"0.5"` is `"20.40"`. */
export const addDecimals = (a: string, b: string): string =>
  format(unitsOf(a) + unitsOf(b), Math.max(decimalsOf(a), decimalsOf(b)));

/**
 * So many percent of an amount, rounded half up to four decimals, and written with as many decimals as the amount has, or more
 * where it needs them: 12.5 of `"19.90"` is `"2.4875"`, 10 of it `"1.99"`.
 */
export function percentOf(amount: string, percent: string): string {
  const divisor = 100n * ONE;
  const units = (unitsOf(amount) * unitsOf(percent) + divisor / 2n) / divisor;
  const fraction = String(units % ONE).padStart(MAX_DECIMALS, "0");
  return format(units, Math.max(decimalsOf(amount), fraction.replace(/0+$/, "").length));
}

/** A number that is not negative and has four decimals at most, in ten-thousandths. */
function unitsOf(decimal: string): bigint {
  const [whole = "", fraction = ""] = decimal.split(".");
  return BigInt(whole) * ONE + BigInt(fraction.padEnd(MAX_DECIMALS, "0"));
}

const decimalsOf = (decimal: string): number => decimal.split(".")[1]?.length ?? 0;

function format(units: bigint, decimals: number): string {
  const fraction = String(units % ONE).padStart(MAX_DECIMALS, "0");
  return decimals === 0 ? String(units / ONE) : `${units / ONE}.${fraction.slice(0, decimals)}`;
}
