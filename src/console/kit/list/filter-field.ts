import type { FunctionComponent } from "preact";

export type FilterField =
  | { readonly name: string; readonly label: string; readonly kind: "text"; readonly placeholder?: string }
  | {
      readonly name: string;
      readonly label: string;
      readonly kind: "choice";
      readonly options: readonly { readonly value: string; readonly label: string }[];
    }
  /** A choice of too many values for a list. A dialog searches them. */
  | {
      readonly name: string;
      readonly label: string;
      readonly kind: "search";
      readonly labelOf: (value: string) => string;
      readonly Dialog: FunctionComponent<SearchDialogProps>;
    }
  /** A time filter. The input shows the user's time zone, but the URL and the API use UTC (RFC 3339). */
  | { readonly name: string; readonly label: string; readonly kind: "time" };

export interface SearchDialogProps {
  readonly onPick: (value: string) => void;
  readonly onClose: () => void;
}
