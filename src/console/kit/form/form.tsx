import type { ComponentChildren } from "preact";
import type { ShownCall } from "../../api/curl.ts";
import type { Action } from "../../api/use-action.ts";
import { ErrorNote } from "../feedback/states.tsx";
import { Button } from "../layout/button.tsx";
import { ApiCall } from "../text/api-call.tsx";

interface FormProps {
  readonly class?: string;
  readonly onSubmit: () => unknown;
  readonly children: ComponentChildren;
}

/** Form that calls `onSubmit` instead of loading a page. */
export const Form = ({ class: className = "stack", onSubmit, children }: FormProps) => (
  <form
    class={className}
    onSubmit={(event) => {
      event.preventDefault();
      onSubmit();
    }}
  >
    {children}
  </form>
);

interface FormFootProps {
  readonly action: Pick<Action<[], unknown>, "error" | "isRunning">;
  /** API call that the form sends. */
  readonly call?: ShownCall | undefined;
  /** Label of the button that submits the form: `Create`. */
  readonly verb: string;
  readonly danger?: boolean;
  /** Whether the form can be submitted now. */
  readonly isReady?: boolean;
  readonly onCancel: () => void;
  readonly cancel?: string;
}

/** Bottom of a form: the error of its action, the equivalent API call, and the buttons. */
export function FormFoot(props: FormFootProps) {
  const { action, call, verb, danger = false, isReady = true, onCancel, cancel = "Cancel" } = props;
  return (
    <>
      {action.error && <ErrorNote error={action.error} />}
      {call && <ApiCall call={call} />}
      <div class="row end foot">
        <Button onClick={onCancel}>{cancel}</Button>
        <Button type="submit" look={danger ? "danger" : "primary"} disabled={!isReady || action.isRunning}>
          {verb}
        </Button>
      </div>
    </>
  );
}
