import type { ComponentChildren } from "preact";
import { Section } from "../layout/page.tsx";
import { Headers } from "./headers.tsx";

type Values = Readonly<Record<string, string | readonly string[]>>;

interface Props {
  readonly body: ComponentChildren;
  readonly headers: Values;
  readonly query: Values;
}

/** Sections with the parts of a received request. */
export const RequestParts = ({ body, headers, query }: Props) => (
  <>
    <Section title="Body">{body}</Section>
    <Section title="Headers">
      <Headers values={headers} label="Headers" />
    </Section>
    {Object.keys(query).length > 0 && (
      <Section title="Query">
        <Headers values={query} label="Query" />
      </Section>
    )}
  </>
);
