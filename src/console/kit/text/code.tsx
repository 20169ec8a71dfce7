import { CopyButton } from "./copy.tsx";
import { Escaped } from "./escaped.tsx";

interface Props {
  readonly text: string;
  /** Name of the text, for screen readers and for the label of the copy button. */
  readonly label: string;
  readonly wrap?: boolean;
  /** Visible heading. Default: the label. */
  readonly title?: string;
}

/** Code block with a copy button. Invisible characters are shown as escapes, but the original text is copied. */
export function Code({ text, label, wrap = false, title }: Props) {
  return (
    <figure class="code" aria-label={label}>
      <figcaption class="code-bar">
        <span>{title ?? label}</span>
        <CopyButton text={text} what={label} />
      </figcaption>
      <pre class={wrap ? "wrap" : ""} tabIndex={0}>
        <Escaped text={text} />
      </pre>
    </figure>
  );
}
