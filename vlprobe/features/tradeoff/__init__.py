"""The Trade-off page: does a model keep its score if a caption is reworded, and lower it if the caption is wrong?"""
