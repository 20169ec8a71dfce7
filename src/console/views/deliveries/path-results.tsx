import type { Schemas } from "../../api/client.ts";
import { type Change, findChanges } from "../../kit/explained/explained-changes.ts";
import { ExplainedItems } from "../../kit/explained/explained-items.tsx";
import { Section } from "../../kit/layout/page.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";

interface Props {
  readonly delivery: Pick<Schemas["WholeDelivery"], "items" | "explanation">;
}

/** Shows how the paths read the delivery. If the definitions have changed since, shows the differences first. */
export function PathResults({ delivery: { items, explanation } }: Props) {
  if (items.length === 0 && explanation.length === 0) return null;
  const changes = findChanges(items, explanation);
  if (explanation.length > 0 && (changes.length === 0 || items.length === 0))
    return (
      <Section title={items.length === 0 ? "Path results with the current definitions" : "Path results"}>
        {items.length > 0 && (
          <p class="faint">The current definitions give the same result as at the time of the delivery.</p>
        )}
        <ExplainedItems items={explanation} />
      </Section>
    );
  if (explanation.length === 0)
    return (
      <Section title="Path results at the time of delivery">
        <ExplainedItems items={items} />
      </Section>
    );
  return (
    <Section title="Changed since the delivery">
      <Changes changes={changes} />
      <details class="more">
        <summary>All path results, then and now</summary>
        <div class="then-and-now">
          <Section title="At the time of delivery">
            <ExplainedItems items={items} />
          </Section>
          <Section title="With the current definitions">
            <ExplainedItems items={explanation} />
          </Section>
        </div>
      </details>
    </Section>
  );
}

const Changes = ({ changes }: { readonly changes: readonly Change[] }) => (
  <ul class="rows changes">
    {changes.map(({ item, type, part, before, after }) => (
      <li key={`${item} ${type} ${part}`}>
        <span class="changes-where">
          {item !== null && `Item ${item} · `}
          <UntrustedText max={128}>{type}</UntrustedText> · <span class="soft">{part}</span>
        </span>
        <del>
          <span class="sr-only">Then: </span>
          <UntrustedText max={300}>{before ?? "no definition"}</UntrustedText>
        </del>
        <ins>
          <span class="sr-only">Now: </span>
          <UntrustedText max={300}>{after ?? "no definition"}</UntrustedText>
        </ins>
      </li>
    ))}
  </ul>
);
