import type { ComponentProps } from "preact";

interface Props extends Omit<ComponentProps<"button">, "class"> {
  /** Further classes of the style sheet: `primary`, `danger`, `quiet`, `icon-only`, `wide`. */
  readonly look?: string | undefined;
}

/** A button that does not submit its form, unless its type is `submit`. */
export const Button = ({ look, type = "button", ...others }: Props) => (
  <button type={type} class={look === undefined ? "button" : `button ${look}`} {...others} />
);
