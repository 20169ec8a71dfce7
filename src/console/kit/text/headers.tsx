import { UntrustedCode, UntrustedText } from "./untrusted-text.tsx";

type Values = Readonly<Record<string, string | readonly string[]>>;

/** List of HTTP headers. A header that occurs several times has one line for each value. */
export function Headers({ values, label }: { readonly values: Values; readonly label: string }) {
  const lines = Object.entries(values).flatMap(([name, value]) =>
    [value].flat().map((one) => [name, one] as const),
  );
  if (lines.length === 0) return <p class="faint">None</p>;
  return (
    <dl class="facts headers" aria-label={label}>
      {lines.map(([name, value], index) => (
        <div key={index}>
          <dt>
            <UntrustedText max={128}>{name}</UntrustedText>
          </dt>
          <dd>
            <UntrustedCode>{value}</UntrustedCode>
          </dd>
        </div>
      ))}
    </dl>
  );
}
