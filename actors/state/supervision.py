"""The tree of living agents: who runs in which host, what a death or a cancel means for the others (flow "A worker dies")."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Node:
    """A living agent. ``host`` is empty while it waits for one."""

    agent: str
    parent: str
    host: str = ""
    stopping: str = ""  # the reason, once a stop was asked for


@dataclass(frozen=True, slots=True)
class Started:
    """An agent was admitted."""

    agent: str
    parent: str


@dataclass(frozen=True, slots=True)
class Placed:
    """It got its host."""

    agent: str
    host: str


@dataclass(frozen=True, slots=True)
class StopAsked:
    """A person or a parent wants the agent, with all its descendants, to stop."""

    agent: str
    reason: str


@dataclass(frozen=True, slots=True)
class Over:
    """The agent's run ended, in whatever way."""

    agent: str


@dataclass(frozen=True, slots=True)
class HostDown:
    """A host process died."""

    host: str
    reason: str


Happening = Started | Placed | StopAsked | Over | HostDown


@dataclass(frozen=True, slots=True)
class Stop:
    """Flag, cancel and reap this agent; children come before their parents."""

    agent: str
    reason: str


@dataclass(frozen=True, slots=True)
class Bury:
    """The agent died with its host: abandon its questions, reap its process groups, report infra."""

    agent: str
    reason: str


Command = Stop | Bury


@dataclass(frozen=True, slots=True)
class Tree:
    """The state: living agents in the order of their start."""

    nodes: tuple[Node, ...] = ()

    def find(self, agent: str) -> Node | None:
        """The living agent of this id."""
        return next((n for n in self.nodes if n.agent == agent), None)

    def children(self, agent: str) -> tuple[Node, ...]:
        """Its living children."""
        return tuple(n for n in self.nodes if n.parent == agent)

    def subtree(self, agent: str) -> tuple[Node, ...]:
        """Its living descendants, deepest first, and last the agent itself if it lives."""
        below = tuple(d for child in self.children(agent) for d in self.subtree(child.agent))
        own = self.find(agent)
        return (*below, own) if own else below

    def above(self, agent: str) -> frozenset[str]:
        """Its living ancestors."""
        parents = {node.agent: node.parent for node in self.nodes}
        found: set[str] = set()
        while (agent := parents.get(agent, "")) and agent not in found:
            found.add(agent)
        return frozenset(found)


def step(tree: Tree, event: Happening) -> tuple[Tree, tuple[Command, ...]]:
    """The next state, and what the hub has to do, in order."""
    match event:
        case Started(agent, parent):
            return (tree, ()) if tree.find(agent) else (Tree((*tree.nodes, Node(agent, parent))), ())
        case Placed(agent, host):
            return _change(tree, agent, host=host), ()
        case StopAsked(agent, reason):
            return _stop(tree, tree.subtree(agent), reason)
        case Over(agent):
            orphans = tuple(n for n in tree.subtree(agent) if n.agent != agent)
            left, commands = _stop(tree, orphans, "its parent has ended")
            return Tree(tuple(n for n in left.nodes if n.agent != agent)), commands
        case HostDown(host, reason):
            dead = tuple(n for n in tree.nodes if n.host == host)
            return tree, tuple(Bury(n.agent, reason) for n in dead)


def _stop(tree: Tree, nodes: tuple[Node, ...], reason: str) -> tuple[Tree, tuple[Command, ...]]:
    commands: list[Command] = []
    for node in nodes:
        if not node.stopping:
            tree = _change(tree, node.agent, stopping=reason)
            commands.append(Stop(node.agent, reason))
    return tree, tuple(commands)


def _change(tree: Tree, agent: str, *, host: str | None = None, stopping: str | None = None) -> Tree:
    def changed(node: Node) -> Node:
        if node.agent != agent:
            return node
        return replace(node, host=node.host if host is None else host, stopping=stopping or node.stopping)

    return Tree(tuple(changed(node) for node in tree.nodes))
