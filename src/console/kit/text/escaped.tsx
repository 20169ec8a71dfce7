import { splitInvisible } from "./visible.ts";

/** Shows text with escapes instead of its invisible characters. */
export const Escaped = ({ text }: { readonly text: string }) => (
  <>
    {splitInvisible(text).map((piece, index) =>
      "text" in piece ? (
        piece.text
      ) : (
        <span key={index} class="escape">
          {piece.escape}
        </span>
      ),
    )}
  </>
);
