import { send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { ErrorNote } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { loadProblems, type Problem } from "../../kit/layout/problems.ts";
import { hasPermission } from "../../session/session.ts";

interface Props {
  readonly problem: Problem;
  readonly onDone?: () => void;
}

/** Button that acknowledges a problem. An acknowledged problem stays in the list until it is resolved, but does not count as open. */
export function Acknowledge({ problem: { id, state }, onDone }: Props) {
  const action = useAction(async () => {
    await send("POST", `/problems/${id}/acknowledge`, { body: {} });
    toast("Acknowledged");
    await loadProblems();
    onDone?.();
  });
  if (state !== "opened" || !hasPermission("problems.write")) return null;
  return (
    <>
      <Button disabled={action.isRunning} onClick={() => void action.run()}>
        Acknowledge
      </Button>
      {action.error && <ErrorNote error={action.error} />}
    </>
  );
}
