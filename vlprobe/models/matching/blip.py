"""BLIP and BLIP-2: towers, and a head that gives the probability that a picture and a text match."""

from typing import TYPE_CHECKING

from vlprobe.models.matching.heads import Towers, TwoSided

if TYPE_CHECKING:
    import torch


class BlipTowers(Towers):
    """BLIP's contrastive towers (ITC)."""

    architecture, context = "BlipForImageTextRetrieval", 35

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        return self._model.vision_proj(hidden[:, 0])

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        return self._model.text_proj(
            self._model.text_encoder(ids, attention_mask=mask).last_hidden_state[:, 0]
        )


class Blip(TwoSided, BlipTowers):
    """BLIP: the text tower looks at the picture. Its head was trained with [ENC] in place of a
    text's first token.

    transformers leaves [CLS] there, as BLIP's demo does; BLIP's released retrieval, which RoCOCO
    follows, does not.
    """

    @property
    def _enc(self) -> int | None:
        """Id of [ENC], if the vocabulary has it."""
        config = self._model.config.text_config
        enc = config.bos_token_id + 1  # [DEC], which begins captions, and then [ENC]
        return enc if enc < config.vocab_size else None

    def _note(self) -> str:
        return "" if self._enc else "its vocabulary has no [ENC]: the matching head reads [CLS]"

    def _pair_logits(
        self, hidden: "torch.Tensor", ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
        if self._enc:
            ids = ids.clone()
            ids[:, 0] = self._enc
        out = self._model.text_encoder(
            ids,
            attention_mask=mask,
            encoder_hidden_states=hidden,
            encoder_attention_mask=hidden.new_ones(hidden.shape[:2], dtype=mask.dtype),
        )
        return self._model.itm_head(out.last_hidden_state[:, 0])


class Blip2Towers(Towers):
    """BLIP-2's contrastive side: a vector for each learned query, of which the best is the
    similarity.
    """

    architecture, context = "Blip2ForImageTextRetrieval", 35

    @property
    def image_dim(self) -> int:
        """Dimension of an embedding of a picture: one vector for each query."""
        return self.dim * self._model.config.num_query_tokens

    def _image_vectors(self, hidden: "torch.Tensor") -> "torch.Tensor":
        queries = self._model.query_tokens.expand(len(hidden), -1, -1)
        mask = hidden.new_ones(hidden.shape[:2]).long()
        out = self._model.qformer(
            query_embeds=queries,
            encoder_hidden_states=hidden,
            encoder_attention_mask=mask,
            return_dict=True,
        )
        return self._model.vision_projection(out.last_hidden_state)

    def _text_vectors(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        embeds = self._model.embeddings(input_ids=ids)
        out = self._model.qformer(
            query_embeds=embeds, query_length=0, attention_mask=mask, return_dict=True
        )
        return self._model.text_projection(out.last_hidden_state[:, 0])


class Blip2(TwoSided, Blip2Towers):
    """BLIP-2: learned queries look at the picture; the best of them is the similarity, their mean
    logit the match.
    """

    def _pair_logits(
        self, hidden: "torch.Tensor", ids: "torch.Tensor", mask: "torch.Tensor"
    ) -> "torch.Tensor":
        import torch

        queries = self._model.query_tokens.expand(len(hidden), -1, -1)
        n = queries.shape[1]
        out = self._model.qformer(
            query_embeds=self._model.embeddings(input_ids=ids, query_embeds=queries),
            query_length=n,
            attention_mask=torch.nn.functional.pad(mask, (n, 0), value=1),
            encoder_hidden_states=hidden,
            encoder_attention_mask=mask.new_ones(hidden.shape[:2]),
            return_dict=True,
        )
        return self._model.itm_head(out.last_hidden_state[:, :n]).mean(dim=1)
