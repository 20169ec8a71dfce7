import type { ComponentChildren } from "preact";
import { Button } from "../layout/button.tsx";
import { Dialog } from "./dialog.tsx";

interface Props {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
}

/** Dialog with a secret that the API returns only once. */
export const ShownOnce = ({ title, children, onClose }: Props) => (
  <Dialog title={title} onClose={onClose}>
    <div class="stack">
      {children}
      <div class="row end">
        <Button look="primary" onClick={onClose}>
          I have saved it
        </Button>
      </div>
    </div>
  </Dialog>
);
