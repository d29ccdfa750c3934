"""Losses of the papers, as functions of embeddings or of their similarities.

Inputs are float32 unit vectors or their cosines: half precision rounds by more than some of these losses move a
cosine, so embed in autocast and normalize in float32. Each returns a mean of shape (), independent of the batch size.
Batches are not empty: the caller leaves out a loss without rows instead of counting it as 0.
"""

from typing import TYPE_CHECKING

import numpy as np

from vlprobe.metrics import pairwise

if TYPE_CHECKING:
    import torch

# Hybrid: v2-close and v1 on the rest
EQSIM_VARIANTS = ("hybrid", "v1", "v2", "v2-close", "v1+v2-close")
FIRST_FLIPS = 0.25  # share of a batch's flips, the weakest, that the curriculum begins with
ALL_FLIPS_AT = 0.5  # share of the training after which all count


def contrastive(logits: "torch.Tensor") -> "torch.Tensor":
    """Compute the mean cross-entropy of picking the text of each picture from the batch, and the
    picture of each text.

    Args:
        logits: Shape (n, n), picture i with text j: the model's scale times the cosine. Matches are
            on the diagonal; two rows of one picture would count as mismatches.

    Source: CLIP; in the papers, the retrieval objective ("ITC") that the other losses are added to.
    """
    import torch
    from torch.nn.functional import cross_entropy

    matches = torch.arange(len(logits), device=logits.device)
    return (cross_entropy(logits, matches) + cross_entropy(logits.T, matches)) / 2


def sigmoid(logits: "torch.Tensor") -> "torch.Tensor":
    """Classify each picture and text as match or mismatch: -log sigmoid(+-logit), summed over the texts.

    Args:
        logits: Shape (n, n), scale times cosine plus the model's bias, without which all pairs
            would start as a match.

    Returns:
        The mean over pictures of the sum over texts, as in the paper: 1 match and n - 1 mismatches.

    Source: SigLIP.
    """
    import torch
    from torch.nn.functional import logsigmoid

    signs = 2 * torch.eye(len(logits), dtype=logits.dtype, device=logits.device) - 1
    return -logsigmoid(signs * logits).sum() / len(logits)


def close_pairs(scores: "torch.Tensor", k: int) -> "torch.Tensor":
    """Select the semantically close pairs of a batch: for each row, the k other rows that score highest with it.

    Half of the k are the texts nearest to its picture, half the pictures nearest to its text, as in
    the released code; with an odd k, one more of the texts. No gradient flows through the choice.

    Args:
        scores: Shape (n, n), picture i beside text j.
        k: 0 to 2 * (n - 1); more are all. The paper takes 8.

    Returns:
        bool of shape (n, n), symmetric: a pair is close if either of the two chose the other. The
        diagonal is False.

    Source: EqBen, section 3 and appendix C.
    """
    import torch

    others = scores.detach().clone().fill_diagonal_(-torch.inf)
    close = torch.zeros_like(others, dtype=torch.bool)
    for side, count in ((others, (k + 1) // 2), (others.T, k // 2)):
        close.scatter_(1, side.topk(min(count, len(side) - 1), dim=1).indices, True)
    return close | close.T


def eqsim_v1(scores: "torch.Tensor", margin: float = 0.0) -> "torch.Tensor":
    """Compute how unequal the two mismatches of each two pairs are: [(s_12 - s_21)^2 - margin]+.

    Args:
        scores: Shape (n, n), picture i beside text j.
        margin: The paper's alpha, in squared units of the scores; so much inequality is forgiven,
            to each two pairs by itself as the formula reads. The released code forgives it to the
            mean of a batch.

    Returns:
        Shape (n, n), symmetric, 0 on the diagonal.

    Source: EqBen, equation 6.
    """
    return ((scores - scores.T) ** 2 - margin).clamp(min=0)


def eqsim_v2(scores: "torch.Tensor", margin: float = 0.0) -> "torch.Tensor":
    """Compute how unevenly the score drops when the text or the picture of either pair changes.

    [((s_11 - s_12) - (s_22 - s_21))^2 - margin]+ + [((s_11 - s_21) - (s_22 - s_12))^2 - margin]+.
    Both are zero only where s_12 = s_21 and s_11 = s_22: more than v1 asks for, and too much for
    pairs that have little in common.

    Args and Returns as in `eqsim_v1`.

    Source: EqBen, equation 6.
    """
    matching, turned = scores.diagonal(), scores.T
    text = (matching[:, None] - scores) - (matching[None, :] - turned)
    image = (matching[:, None] - turned) - (matching[None, :] - scores)
    return (text**2 - margin).clamp(min=0) + (image**2 - margin).clamp(min=0)


def hard_negatives(logits: "torch.Tensor", k: int) -> "torch.Tensor":
    """Compute the contrastive loss over each pair and its k highest-scoring mismatches, both ways.

    Args:
        logits: Shape (n, n), picture i beside text j: the model's scale times the cosine.
        k: 0 or more; more than n - 1 are all, which is `contrastive`. With 0 the loss is 0.

    Source: EqBen, table 6, names "fine-tuning with hard negative sampling" (HardNeg) beside the
        plain fine-tuning and gives no formula; k is EqSim's, whose close pairs are hard negatives
        in appendix C.
    """
    import torch
    from torch.nn.functional import cross_entropy

    matches = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    total = torch.zeros((), dtype=logits.dtype, device=logits.device)
    for side in (logits, logits.T):
        mismatches = side.masked_fill(
            torch.eye(len(side), dtype=torch.bool, device=side.device), -torch.inf
        )
        hardest = mismatches.topk(min(k, len(side) - 1), dim=1).values
        total = total + cross_entropy(
            torch.cat([side.diagonal()[:, None], hardest], dim=1), matches
        )
    return total / 2


def eqsim(
    scores: "torch.Tensor", k: int, margin: float = 0.0, variant: str = "hybrid"
) -> "torch.Tensor":
    """Compute EqSim, which keeps similarity proportional to meaning: v2 on the close pairs, v1 on all others.

    The loss is the sum of two means, one over the close pairs and one over the others. Its unit is
    that of the scores, squared, so a margin or weight depends on the kind of score. This is the rule
    of section 3, the variant "hybrid"; the ablation (table 6) and appendix A.3 describe v1 on all
    pairs and v2 on the close ones: "v1+v2-close".

    Args:
        scores: Shape (n, n), n of 2 or more: cosines (section 3), or a softmax of the logits over
            the texts (appendix C).
        k: See `close_pairs`; 0 is v1 on all.
        margin: The paper's alpha: 0, .04 or .1, of scores that a softmax made.
        variant: Of EQSIM_VARIANTS; "v1" and "v2" are of all pairs, "v2-close" of the close ones
            alone (0 where k is 0).

    Source: EqBen, section 3, equation 6, appendix C; the variants, table 6.
    """
    import torch

    close = close_pairs(scores, k)
    every = ~torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    none = torch.zeros_like(every)
    v1_counts, v2_counts = {
        "hybrid": (every & ~close, close),
        "v1": (every, none),
        "v2": (none, every),
        "v2-close": (none, close),
        "v1+v2-close": (every, close),
    }[variant]
    total = torch.zeros((), dtype=scores.dtype, device=scores.device)
    for pairs, counted in (
        (eqsim_v2(scores, margin), v2_counts),
        (eqsim_v1(scores, margin), v1_counts),
    ):
        if counted.any():
            total = total + pairs[counted].mean()
    return total


def corrupted(
    altered: "torch.Tensor", images: "torch.Tensor", texts: "torch.Tensor"
) -> "torch.Tensor":
    """Compute the similarity of an altered caption (SC) or picture (VC) to the true picture and the true caption.

    (cos(altered, image) + cos(altered, text)) / 2, to be minimized. It has no margin, so a large weight
    costs retrieval.

    Args:
        altered: Embeddings of the altered captions or pictures, shape (m, dim), all of which differ
            from their source.
        images: Embeddings of their pictures, shape (m, dim).
        texts: Embeddings of their captions, shape (m, dim).

    Source: RoCOCO, equation 2 (SC) and equation 3 (VC).
    """
    return ((altered * images).sum(dim=-1) + (altered * texts).sum(dim=-1)).mean() / 2


def consistency(
    images: "torch.Tensor", texts: "torch.Tensor", paraphrases: "torch.Tensor"
) -> "torch.Tensor":
    """Compute how far rewording shifts the score: |s(I, c) - s(I, c')|, the invariance
    error itself.

    It is zero if all captions are the same to the model: combine it with a loss that separates them.

    Args:
        images, texts, paraphrases: Each of shape (m, dim), row by row.

    Source: LGIP, section 5 names such a loss and gives no formula; this is its equation 2.
    """
    return ((images * texts).sum(dim=-1) - (images * paraphrases).sum(dim=-1)).abs().mean()


def discrimination(
    images: "torch.Tensor",
    texts: "torch.Tensor",
    flips: "torch.Tensor",
    scale: "torch.Tensor",
    weight: "torch.Tensor",
) -> "torch.Tensor":
    """Compute the contrastive loss of each caption against its flip: log(1 + exp(-scale * gap)).

    The gap is s(I, c) - s(I, c_flip); a gap of 0 costs log 2.

    Args:
        images, texts, flips: Each of shape (m, dim), row by row.
        scale: The model's logit scale, shape (); this loss does not train it.
        weight: Weight of each row, shape (m,), 0 or more, not all 0; see `curriculum`.

    Source: LGIP, section 5 names such a loss and gives no formula.
    """
    from torch.nn.functional import softplus

    gap = (images * texts).sum(dim=-1) - (images * flips).sum(dim=-1)
    return (softplus(-scale.detach() * gap) * weight).sum() / weight.sum()


def strengths(kinds: np.ndarray, texts: "torch.Tensor", flips: "torch.Tensor") -> np.ndarray:
    """Compute how strongly each flip contradicts its caption for the model in training, 0 to 1, shape (m,).

    Args:
        kinds: color, number or object, shape (m,).
        texts, flips: Embeddings of the captions and of the flips, each of shape (m, dim).

    Source: LGIP, section 4.3, by `metrics.pairwise.strength`.
    """
    return pairwise.strength(kinds, (texts * flips).sum(dim=-1).detach().cpu().numpy())


def curriculum(strength: np.ndarray, done: float) -> np.ndarray:
    """Select the flips that count: the weakest quarter of a batch at first, all of them from half of the training on.

    Args:
        strength: Of the batch's flips, shape (m,), m of 1 or more.
        done: Share of the training that is done, 0 to 1.

    Returns:
        float32 of shape (m,), 1 or 0, never all 0.

    Source: LGIP, section 5: a "curriculum that progressively increases semantic conflict"; the pace
        is ours.
    """
    share = FIRST_FLIPS + (1 - FIRST_FLIPS) * min(done / ALL_FLIPS_AT, 1.0)
    return (strength <= np.quantile(strength, share)).astype(np.float32)
