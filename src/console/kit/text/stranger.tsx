import { piecesOf, visibleText } from "./visible.ts";

interface Props {
  readonly children: string | number | null | undefined;
  /** More characters than these are cut, and it is said. */
  readonly max?: number;
}

/** Text that came from outside: an id, a name, a header, a body. It is shown as what it is, and does nothing. */
export function Stranger({ children, max = 2_000 }: Props) {
  if (children === null || children === undefined || children === "") return <span class="faint">–</span>;
  const whole = String(children);
  const text = whole.length > max ? whole.slice(0, max) : whole;
  return (
    <bdi class="stranger" title={whole.length > 24 ? visibleText(text.slice(0, 500)) : undefined}>
      {piecesOf(text).map((piece, index) =>
        "text" in piece ? (
          piece.text
        ) : (
          <span key={index} class="escape">
            {piece.escape}
          </span>
        ),
      )}
      {whole.length > max && (
        <span class="faint"> … {(whole.length - max).toLocaleString()} more characters</span>
      )}
    </bdi>
  );
}
