interface Props {
  readonly label: string;
  readonly values: readonly number[];
}

const WIDTH = 100;
const HEIGHT = 20;

/** Small line without axes, for a row of a table. Its height is relative to the highest value. */
export function Sparkline({ label, values }: Props) {
  const highest = Math.max(1, ...values);
  const points = values
    .map((value, index) => {
      const x = (index / Math.max(1, values.length - 1)) * WIDTH;
      return `${x.toFixed(1)},${(HEIGHT - 1 - (value / highest) * (HEIGHT - 2)).toFixed(1)}`;
    })
    .join(" ");
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polygon points={`0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} />
      <polyline points={points} />
    </svg>
  );
}
