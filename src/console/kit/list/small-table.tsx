import type { ComponentChildren } from "preact";

interface Props {
  readonly class: string;
  /** Titles of the columns. */
  readonly head: readonly string[];
  /** Rows of the body. */
  readonly children: ComponentChildren;
}

/** Table of a few rows that are all visible. */
export const SmallTable = ({ class: name, head, children }: Props) => (
  <table class={name}>
    <thead>
      <tr>
        {head.map((title) => (
          <th key={title} scope="col">
            {title}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>{children}</tbody>
  </table>
);
