import { send } from "../../api/client.ts";
import { ActionButton } from "../../kit/feedback/buttons.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { loadProblems, type Problem } from "../../kit/layout/problems.ts";
import { hasPermission } from "../../session/session.ts";

interface Props {
  readonly problem: Problem;
  readonly onDone?: () => void;
}

/** Button that acknowledges a problem. An acknowledged problem stays in the list until it is resolved, but does not count as open. */
export function Acknowledge({ problem: { id, state }, onDone }: Props) {
  if (state !== "opened" || !hasPermission("problems.write")) return null;
  const acknowledge = async (): Promise<void> => {
    await send("POST", `/problems/${id}/acknowledge`, { body: {} });
    toast("Acknowledged");
    await loadProblems();
    onDone?.();
  };
  return <ActionButton act={acknowledge}>Acknowledge</ActionButton>;
}
