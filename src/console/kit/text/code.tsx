import { CopyButton } from "./copy.tsx";
import { piecesOf } from "./visible.ts";

interface Props {
  readonly text: string;
  /** What it is, for who hears it and who copies it. */
  readonly label: string;
  readonly wrap?: boolean;
  /** Over it: what the reader may do with it. */
  readonly title?: string;
}

/** A block of code with a button to copy it. Hidden characters are shown by their numbers; what is copied is the text as it is. */
export function Code({ text, label, wrap = false, title }: Props) {
  return (
    <figure class="code" aria-label={label}>
      <figcaption class="code-bar">
        <span>{title ?? label}</span>
        <CopyButton text={text} what={label} />
      </figcaption>
      <pre class={wrap ? "wrap" : ""} tabIndex={0}>
        {piecesOf(text).map((piece, index) =>
          "text" in piece ? (
            piece.text
          ) : (
            <span key={index} class="escape">
              {piece.escape}
            </span>
          ),
        )}
      </pre>
    </figure>
  );
}
