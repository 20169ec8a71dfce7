import { Escaped } from "./escaped.tsx";

/** Indentation, name, separator and text value of a line of indented JSON. Other values and long lines have only the last part. */
const PARTS = /^(\s*)("(?:[^"\\]|\\.)*"(?=: ))?(: )?("(?:[^"\\]|\\.)*")?(.*)$/s;

/** Shows a line of indented JSON with colors for names and text values. */
export function JsonLine({ text }: { readonly text: string }) {
  const [, indent = "", name = "", colon = "", value = "", rest = ""] = PARTS.exec(text) ?? [];
  return (
    <>
      {indent}
      <span class="json-name">
        <Escaped text={name} />
      </span>
      {colon}
      <span class="json-text">
        <Escaped text={value} />
      </span>
      <Escaped text={rest} />
    </>
  );
}
