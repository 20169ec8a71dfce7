import type { ComponentChildren } from "preact";

interface Props {
  /** Titles of the columns. */
  readonly head: readonly string[];
  /** Rows of the body. */
  readonly children: ComponentChildren;
}

/** Table of a few rows that are all visible. */
export const SmallTable = ({ head, children }: Props) => (
  <table class="small-table">
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
